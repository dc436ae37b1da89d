# Packages of Debian's archive in folders of our own, so that the system's lists, cache and state stay as they
# are. Sourced by tools/drivers and tools/real_tokenizers after tools/common.sh. Needs: bash, and "store",
# the folder that all of it lies in.

# own_apt NAME ARGUMENTS...: apt-get with lists, cache and state of our own in "$store/NAME". The
# system's stay as they are, and do not count. Of a package that is installed in a version of another archive, apt would
# want that version.
own_apt() {
  local own=$store/$1
  shift
  apt-get -qq -o Dir::Etc::SourceList="$own/sources.list" -o Dir::Etc::SourceParts=/dev/null \
    -o Dir::State::Lists="$own/lists" -o Dir::State::status="$own/status" -o Dir::Cache="$own/cache" \
    -o APT::Sandbox::User="$(id -un)" -o Debug::NoLocking=true "$@"
}

# start_apt NAME TYPE SUITE [ARGUMENTS...]: readies an own_apt of that name, which knows packages (TYPE deb)
# or sources (deb-src) of one suite. It knows them as if nothing was installed. So all that a package needs comes with
# it, down to the C library.
start_apt() {
  local name=$1 type=$2 suite=$3
  shift 3
  prepare_apt
  mkdir -p "$store/$name/lists/partial" "$store/$name/cache/archives/partial"
  : >"$store/$name/status"
  sed -n "s/^deb\(.* \)bookworm main\$/$type\1$suite main/p" "$store/apt/sources.list" \
    >"$store/$name/sources.list"
  own_apt "$name" "$@" update
}

# archive CODENAME [OPTION...]: the address of Debian's archive with that release, as apt knows it,
# or nothing; the options go to apt-get.
archive() {
  local codename=$1
  shift
  apt-get "$@" indextargets --format '$(REPO_URI) $(CODENAME) $(COMPONENT)' \
    'Identifier: Packages' 'Origin: Debian' |
    awk -v name="$codename" '$2 == name && $3 == "main" && !found { print $1; found = 1 }'
}

# Writes a source list with the release, its security updates and its backports, from the archives
# that apt already uses.
prepare_apt() {
  [ "${apt_ready:-no}" = no ] || return 0
  mkdir -p "$store/apt/lists/partial" "$store/apt/cache/archives/partial"
  : >"$store/apt/status"  # as if nothing was installed
  local uri security known=()
  uri=$(archive bookworm)
  if [ -z "$uri" ]; then  # apt has no lists yet: read them into a folder of our own
    mkdir -p "$store/apt/system/partial"
    known=(-o "Dir::State::Lists=$store/apt/system" -o "Dir::Cache=$store/apt/cache"
      -o "APT::Sandbox::User=$(id -un)")
    apt-get -qq "${known[@]}" update
    uri=$(archive bookworm "${known[@]}")
  fi
  security=$(archive bookworm-security "${known[@]}")
  [ -n "$uri" ] || fail "apt's configuration here names no archive of Debian 12 (bookworm);" \
    "packages are taken from there."
  local keys=/usr/share/keyrings/debian-archive-keyring.gpg options=
  [ ! -f "$keys" ] || options="[signed-by=$keys] "
  printf 'deb %s%s %s main\n' "$options" "$uri" bookworm "$options" "$uri" bookworm-backports \
    >"$store/apt/sources.list"
  [ -z "$security" ] ||
    printf 'deb %s%s bookworm-security main\n' "$options" "$security" >>"$store/apt/sources.list"
  say "reading package lists"
  own_apt apt update
  apt_ready=yes
}

# fetch_all NAME APT ARGUMENTS...: unpacks packages and all that they need into "$store/NAME"; the
# arguments are options of apt-get, then packages.
fetch_all() {
  local name=$1 apt=$2 package
  shift 2
  say "downloading $name and its libraries"
  rm -rf "$store/$name.part"
  mkdir "$store/$name.part"
  own_apt "$apt" install -y --no-install-recommends --download-only "$@"
  for package in "$store/$apt"/cache/archives/*.deb; do dpkg -x "$package" "$store/$name.part"; done
  rm -rf "$store/$apt/cache" "${store:?}/$name"
  mv "$store/$name.part" "$store/$name"
  say "[$name] is ready"
}
