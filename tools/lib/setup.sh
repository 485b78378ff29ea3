# shellcheck shell=bash
# Sourced by tools/run, tools/test and .ci/run: installs what is missing, builds, and finds the software devices (the
# tests find them by themselves).
# Everything here speaks on stderr only, so that stdout stays the program's own, and says nothing when nothing is to do.

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)

# What a build and its tests need on Debian. libvulkan-dev brings the loader; chromium-common ships SwiftShader.
debian_packages=(
    gcc g++ libc6-dev cmake ninja-build pkgconf
    libvulkan-dev libvulkan-volk-dev glslc libjansson-dev libcmocka-dev
    mesa-vulkan-drivers vulkan-validationlayers chromium-common
)

say() {
    printf '%s\n' "$*" >&2
}

# Prints those of the given Debian packages that are not installed.
missing_packages() {
    local installed package
    installed=$(dpkg-query -W -f '${Package} ${db:Status-Status}\n' "$@" 2>/dev/null || true)
    for package in "$@"; do
        grep -qxF "$package installed" <<<"$installed" || printf '%s\n' "$package"
    done
}

# Installs Debian packages; without root or sudo it names the command and stops.
apt_install() {
    local as_root=()
    if [ "$(id -u)" -ne 0 ]; then
        if ! command -v sudo >/dev/null; then
            say "Packages are missing, and neither root nor sudo is at hand. As root, run:" \
                "apt-get install --no-install-recommends $*"
            exit 1
        fi
        as_root=(sudo)
    fi
    say "Installing $*"
    "${as_root[@]}" apt-get -qq update >&2 || say "apt-get update failed; trying with the package lists at hand"
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends "$@" >&2
}

# For systems other than Debian: names what is not found, and stops if there is anything.
check_by_hand() {
    local missing=() tool module
    for tool in cc c++ cmake ninja pkg-config glslc; do
        command -v "$tool" >/dev/null || missing+=("$tool")
    done
    for module in vulkan jansson cmocka; do
        pkg-config --exists "$module" 2>/dev/null || missing+=("$module")
    done
    [ ${#missing[@]} -gt 0 ] || return 0
    say "Not found on this system: ${missing[*]}"
    say "Packages are installed for you on Debian only. Please install a C11 and a C++17 compiler, CMake 3.25, ninja," \
        "pkg-config, glslc, the Vulkan loader and its headers, volk, jansson and cmocka; for the tests also the" \
        "Khronos validation layer, lavapipe (part of Mesa) and SwiftShader (part of Chromium)."
    exit 1
}

# install_missing [PACKAGE...]: what every build needs, and the given Debian packages besides.
install_missing() {
    if ! grep -qx 'ID=debian' /etc/os-release 2>/dev/null; then
        check_by_hand
        return
    fi
    local missing
    mapfile -t missing < <(missing_packages "${debian_packages[@]}" "$@")
    [ ${#missing[@]} -eq 0 ] || apt_install "${missing[@]}"
}

# build PRESET [TARGET...]: configures build/PRESET once (afterwards ninja does it when a list changes) and builds.
build() {
    local folder=$root/build/$1
    [ -f "$folder/build.ninja" ] || (cd "$root" && cmake --preset "$1") >&2
    shift
    case $(ninja -C "$folder" -n "$@" 2>&1 || true) in
    *'no work to do'*) ;;
    *) ninja -C "$folder" "$@" >&2 ;;
    esac
}

# True if the loader finds a device that is not a CPU by itself. $1: the vkattn program.
has_hardware_device() {
    "$1" devices --json 2>/dev/null | grep -Eo '"type": *"[a-z]+"' | grep -qv '"cpu"'
}

# Where no other device exists, hands the loader the two software devices (SwiftShader is not in its search path). A
# list set by the user stays. $1: the vkattn program.
choose_drivers() {
    [ -z "${VK_DRIVER_FILES:-}${VK_ICD_FILENAMES:-}" ] || return 0
    ! has_hardware_device "$1" || return 0
    local list
    list=$(dpkg -L mesa-vulkan-drivers chromium-common 2>/dev/null |
        grep -E '/(lvp_icd|vk_swiftshader_icd)[^/]*\.json$' | paste -sd: || true)
    [ -z "$list" ] || export VK_ICD_FILENAMES=$list
}
