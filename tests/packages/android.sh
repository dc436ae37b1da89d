#!/usr/bin/env bash
# Runs the tests on the Android device or emulator that adb finds: those without a GPU, then the operators on its
# Vulkan driver. Not run yet.
#
#   tests/packages/android.sh BUILD    BUILD of the preset ndk or ndk-emulator; ANDROID_NDK_LATEST_HOME or
#                                      ANDROID_NDK_HOME has the C++ library
set -euo pipefail
build=$1
ndk=${ANDROID_NDK_LATEST_HOME:-$ANDROID_NDK_HOME}
there=/data/local/tmp/vkformer
case "$(adb shell uname -m | tr -d '\r')" in
  aarch64) triple=aarch64-linux-android ;;
  *) triple=x86_64-linux-android ;;
esac
runtime=$(find "$ndk/toolchains/llvm/prebuilt" -path "*/$triple/libc++_shared.so" | head -n 1)
adb shell "rm -rf $there && mkdir -p $there"
adb push "$build"/bin/vkformer_tests "$build"/lib/*.so "$runtime" "$there/"
adb push models tests "$there/"  # where the preset says that the tests look for them
on_device() { adb shell "cd $there && TMPDIR=$there LD_LIBRARY_PATH=$there $*"; }
on_device ./vkformer_tests -ts=cpu
on_device VKFORMER_TEST_TIER=baseline ./vkformer_tests -ts=gpu "-sf='*tests/ops/*'"
on_device VKFORMER_TEST_TIER=best ./vkformer_tests -ts=gpu "-sf='*tests/ops/*'"
