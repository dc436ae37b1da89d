# Drivers of GPUs that are not there, for tools/drivers, which sources it after tools/common.sh.
#
# Mesa's real drivers and compilers, each with a shim that answers in place of the kernel. Devices, limits, pipelines
# and submits work as calls. Shaders are compiled for the real instruction set, but nothing runs. Those of desktops come
# in sid's packages, which lavapipe-newest brings, too; Intel's shim is in no package and is compiled from the source
# package. Those of arm64 boards run under qemu, and so must the command.

# Of each driver: its manifest and its shim. Then the variable that picks a chip, where the shim would else take another
# than is meant. Last, the chips that were seen to work.
declare -A gpu_manifest=([nvk]=nouveau [turnip]=freedreno [asahi]=asahi [radv-newest]=radeon [anv]=intel
  [panvk]=panfrost [v3dv]=broadcom [powervr]=powervr_mesa)
declare -A gpu_shim=([nvk]=nouveau [turnip]=freedreno [asahi]=asahi [radv-newest]=amdgpu [anv]=intel
  [panvk]=panfrost [v3dv]=v3d [powervr]=powervr)
declare -A gpu_variable=([nvk]=NOUVEAU_CHIPSET [turnip]=FD_GPU_ID [radv-newest]=AMDGPU_GPU_ID
  [anv]=INTEL_STUB_GPU_PLATFORM [panvk]=PAN_GPU_ID)
declare -A gpu_chips=(
  [nvk]='162 (Turing) 172 (Ampere) 192 (Ada) 180 (Hopper) 1b2 (Blackwell)'
  [turnip]='618 630 660 730 740 750 830'
  [radv-newest]='polaris10 vega10 raven renoir navi10 navi21 vangogh navi31 navi33 phoenix strix1 gfx1201'
  [anv]='skl icl tgl adl dg2 mtl lnl bmg'
  [panvk]='a867 (G610) ac74 (G310)'
  [asahi]='(M1)' [v3dv]='(V3D 7.1, Raspberry Pi 5)' [powervr]='(BXS-4-64)')
gpu_names='nvk:CHIP turnip:CHIP asahi radv-newest:CHIP anv:CHIP panvk:CHIP v3dv powervr'

# is_gpu NAME: whether it is one of these drivers, with or without a chip.
is_gpu() { [ -n "${gpu_shim[${1%%:*}]:-}" ]; }

# is_emulated NAME: whether the driver is one of arm64 boards and this machine is another.
is_emulated() {
  [ "$triplet" != aarch64-linux-gnu ] && [[ ${1%%:*} == panvk || $1 == v3dv || $1 == powervr ]]
}

# Fails if the name of such a driver picks no chip, or one that cannot work. Other unknown chips pass: the
# shims know their chips, and of one that they do not know no device comes.
check_gpu() {
  local driver=${1%%:*} chip=
  [[ $1 != *:* ]] || chip=${1#*:}
  if [ -z "${gpu_variable[$driver]:-}" ]; then
    [ "$1" = "$driver" ] || fail "[$driver] has no choice of chips; its name stands alone."
    return 0
  fi
  [ -n "$chip" ] || fail "[$1] names no chip, and its shim would take any one; these work as" \
    "$driver:CHIP: ${gpu_chips[$driver]}."
  case "$driver:$chip" in
    turnip:640 | turnip:650 | turnip:690)
      fail "[$1]: the shim does not know this chip; these work: ${gpu_chips[$driver]}." ;;
    turnip:702 | panvk:7212 | panvk:7402)
      fail "[$1] offers Vulkan 1.0 only; these work: ${gpu_chips[$driver]}." ;;
  esac
}

list_gpus() {
  local name
  for name in $gpu_names; do printf '%s  %s\n' "$name" "${gpu_chips[${name%:*}]:-}"; done
}

# manifest_of_gpu NAME, shim_of_gpu NAME: their paths, once they are there.
manifest_of_gpu() {
  local folder=lavapipe-newest
  if is_emulated "$1"; then folder=arm64; fi
  printf '%s\n' "$store/$folder/usr/share/vulkan/icd.d/${gpu_manifest[${1%%:*}]}_icd.json"
}
shim_of_gpu() {
  local folder=lavapipe-newest/usr/lib/$triplet
  if is_emulated "$1"; then folder=arm64/usr/lib/aarch64-linux-gnu; fi
  [ "${1%%:*}" != anv ] || folder=intel-shim
  printf '%s\n' "$store/$folder/lib${gpu_shim[${1%%:*}]}_noop_drm_shim.so"
}

# environment_of_gpu NAME: NAME=value lines.
environment_of_gpu() {
  local driver=${1%%:*}
  printf 'VK_DRIVER_FILES=%s\n' "$(manifest_of_gpu "$1")"
  printf 'LD_PRELOAD=%s\n' "$(shim_of_gpu "$1")"
  # What the compiler says of a shader it says when it compiles.
  printf 'MESA_SHADER_CACHE_DISABLE=true\n'
  [ -z "${gpu_variable[$driver]:-}" ] || printf '%s=%s\n' "${gpu_variable[$driver]}" "${1#*:}"
  case "$driver" in  # asked for where a driver or a chip is not yet conformant
    nvk) printf 'NVK_I_WANT_A_BROKEN_VULKAN_DRIVER=1\n' ;;
    powervr) printf 'PVR_I_WANT_A_BROKEN_VULKAN_DRIVER=1\n' ;;
  esac
}

# get_gpu NAME: a folder without shims was made before they were asked for.
get_gpu() {
  local shim
  check_gpu "$1"
  shim=$(shim_of_gpu "$1")
  if [ "${1%%:*}" = anv ]; then
    get lavapipe-newest
    [ -f "$shim" ] || make_intel_shim
  elif is_emulated "$1"; then
    [ -n "$(qemu)" ] || fetch qemu newest qemu-user-static
    [ -f "$shim" ] || fetch_arm64
  else
    [ -f "$shim" ] || fetch_newest
  fi
}

# The program that runs programs of arm64: of this machine, or got; nothing where neither is there.
qemu() {
  command -v qemu-aarch64-static || compgen -G "$store/qemu/usr/bin/qemu-aarch64-static" || true
}

# Sid's libraries of arm64. A system has /lib as a link, where programs look for what loads libraries.
fetch_arm64() {
  start_apt apt-arm64 deb sid "${arm64[@]}"
  fetch_all arm64 apt-arm64 "${arm64[@]}" mesa-vulkan-drivers mesa-drm-shim libvulkan1
  ln -s usr/lib "$store/arm64/lib"
}
arm64=(-o APT::Architecture=arm64 -o APT::Architectures::=arm64)

# check_arm64 NAME COMMAND: fails if that is no program that qemu could run.
check_arm64() {
  local program
  program=$(type -P "$2") || fail "[$2] was not found."
  readelf -h "$program" 2>/dev/null | grep AArch64 >/dev/null ||
    fail "[$1] is a driver of arm64 and runs under qemu; so must the command, and [$2] is no program of" \
      "arm64. tools/cross aarch64 makes build/cross/aarch64/build/bin/vkformer."
}

# run_arm64 COMMAND...: under qemu, with sid's libraries as the system's and the environment "variables".
# What these libraries lack (some have another version there) comes from those that tools/cross linked.
run_arm64() {
  local libraries=$store/arm64/usr/lib/aarch64-linux-gnu
  libraries+=:${store%/*}/cross/aarch64/root/usr/lib/aarch64-linux-gnu
  exec env LD_LIBRARY_PATH="$libraries" "${variables[@]}" "$(qemu)" -L "$store/arm64" "$@"
}

# Compiles the shim of Intel GPUs from Debian 13's Mesa: its files, those of Mesa's general parts that they
# use and what Mesa's scripts generate. The interface to the kernel does not change with Mesa, so that it
# serves sid's driver. Without assertions: one in it forbids buffers without bytes, which the driver makes.
make_intel_shim() {
  local part=$store/intel-shim.part from made include
  from=$part/mesa/src made=$part/made include=$part/packages/usr/include
  rm -rf "$part"
  mkdir -p "$part/debs" "$part/mesa" "$made/intel/dev"
  start_apt apt-source deb-src trixie
  say "compiling the shim of Intel GPUs"
  (cd "$part/debs" && own_apt apt-source source --download-only mesa &&
    own_apt apt download python3-mako python3-markupsafe libdrm-dev)
  for package in "$part/debs"/*.deb; do dpkg -x "$package" "$part/packages"; done
  tar -xf "$part"/debs/mesa_*.orig.tar.xz -C "$part/mesa" --strip-components 1 --wildcards \
    '*/include' '*/src/'{c11,compiler,drm-shim,intel,util}
  local dev=$from/intel/dev python=(env
    "PYTHONPATH=$part/packages/usr/lib/python3/dist-packages" python3 -B)
  "${python[@]}" "$dev/gen_wa_helpers.py" "$dev/mesa_defs.json" "$made/intel/dev/intel_wa".{h,c}
  "${python[@]}" "$dev/intel_device_info_gen_h.py" "$made/intel/dev/intel_device_info_gen.h"
  "${python[@]}" "$dev/intel_device_info_serialize_gen_c.py" "$made/serialize.c"
  local defines=(NDEBUG _GNU_SOURCE HAVE_PTHREAD HAVE_STRUCT_TIMESPEC HAVE_TIMESPEC_GET HAVE_ENDIAN_H
    UTIL_ARCH_LITTLE_ENDIAN=1 UTIL_ARCH_BIG_ENDIAN=0 HAVE_FUNC_ATTRIBUTE_PACKED HAVE_MEMFD_CREATE
    HAVE_LIBDRM HAVE_SECURE_GETENV HAVE_PROGRAM_INVOCATION_NAME)
  gcc -shared -fPIC -O1 -w -std=gnu11 "${defines[@]/#/-D}" -fvisibility=hidden -ffunction-sections \
    -Wl,--gc-sections -Wl,--no-undefined -I"$made" -I"$made/intel" -I"$made/intel/dev" -I"$from" -I"$from/intel" -I"$dev" \
    -I"$part/mesa/include" -I"$include" -I"$include/libdrm" -o "$part/libintel_noop_drm_shim.so" \
    "$from"/intel/tools/intel_noop_drm_shim.c "$from"/drm-shim/{device,drm_shim}.c \
    "$dev"/{intel_device_info.c,i915/intel_device_info.c} "$made"/{intel/dev/intel_wa,serialize}.c \
    "$from"/util/{anon_file,hash_table,log,os_misc,parson,ralloc,set,simple_mtx}.c \
    "$from"/util/{u_call_once,u_debug,u_printf,u_process,vma}.c -ldl -lm -lpthread
  mkdir -p "$store/intel-shim"
  mv "$part/libintel_noop_drm_shim.so" "$store/intel-shim"
  rm -rf "$part"
  say "[anv] is ready"
}
