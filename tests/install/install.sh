#!/usr/bin/env bash
# install.sh STEP BUILD_DIR C_COMPILER FLAGS: what a host does with an installed vkattn.
#   stage      installs into a scratch prefix
#   cmake      builds and runs host/consumer.c with the CMake package, shared and static, and host/example.c
#   pkgconfig  the same with vkattn.pc
#   symbols    looks at what the two libraries define
#   readme     compares the example in README.md with host/example.c
set -euo pipefail
step=$1 build=$2 cc=$3 flags=$4
host=$(cd "$(dirname "$0")/host" && pwd)
scratch=$build/tests/install/scratch
prefix=$scratch/prefix

# run_consumer KIND PROGRAM: it must run, and use the installed shared library if and only if it was linked to it.
run_consumer() {
    local libraries
    libraries=$(LD_LIBRARY_PATH=$libdir ldd "$2")
    case $1 in
    shared) grep -q "libvkattn.so.* => $libdir/" <<<"$libraries" ;;
    static) ! grep -q libvkattn <<<"$libraries" ;;
    esac || { echo "FAILED: $2 is not linked to the $1 library: $libraries"; exit 1; }
    grep -q libvulkan <<<"$libraries" || { echo "FAILED: $2 is not linked to libvulkan"; exit 1; }
    LD_LIBRARY_PATH=$libdir "$2" || { echo "FAILED: $1 consumer, exit status $?"; exit 1; }
}

if [ "$step" = stage ]; then
    rm -rf "$scratch"
    cmake --install "$build" --prefix "$prefix" >/dev/null
    for file in bin/vkattn include/vkattn/vkattn.h; do
        [ -s "$prefix/$file" ] || { echo "FAILED: $file is not installed"; exit 1; }
    done
    exit 0
fi

pc=$(find "$prefix" -name vkattn.pc)
libdir=$(dirname "$(dirname "$pc")")

case $step in
cmake)
    cmake -S "$host" -B "$scratch/cmake" -G Ninja -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_C_COMPILER="$cc" \
        -DCMAKE_C_FLAGS="$flags" >/dev/null
    cmake --build "$scratch/cmake"
    run_consumer shared "$scratch/cmake/consumer_shared"
    run_consumer static "$scratch/cmake/consumer_static"
    LD_LIBRARY_PATH=$libdir "$scratch/cmake/example"
    ;;
pkgconfig)
    export PKG_CONFIG_PATH=$libdir/pkgconfig
    read -ra shared <<<"$flags $host/consumer.c $(pkg-config --cflags --libs vkattn vulkan)"
    "$cc" -o "$scratch/consumer_shared" "${shared[@]}"
    run_consumer shared "$scratch/consumer_shared"
    # -lvkattn alone would take the shared library, which stands in the same folder.
    libs=$(pkg-config --static --cflags --libs vkattn)
    read -ra static <<<"$flags $host/consumer.c ${libs/-lvkattn/-l:libvkattn.a} $(pkg-config --libs vulkan)"
    "$cc" -o "$scratch/consumer_static" "${static[@]}"
    run_consumer static "$scratch/consumer_static"
    ;;
symbols)
    soname=$(readelf -d "$libdir/libvkattn.so" | sed -n 's/.*SONAME.*\[\(.*\)\]/\1/p')
    [ -e "$libdir/$soname" ] && [[ $soname =~ ^libvkattn\.so\.[0-9.]+$ ]] || { echo "FAILED: SONAME '$soname'"; exit 1; }
    exported=$(nm -D --defined-only "$libdir/libvkattn.so" | awk 'NF == 3 { print $3 }' | sort)
    defined=$(nm -g --defined-only "$libdir/libvkattn.a" | awk 'NF == 3 { print $3 }' | sort)
    declared=$(sed -n 's/^VKA_API [a-z0-9_ *]*[ *]\(vka_[a-z0-9_]*\)(.*/\1/p' "$prefix"/include/vkattn/*.h | sort)
    [ "$exported" = "$declared" ] || { echo "FAILED: exported (<) is not what the headers declare (>):"
        diff <(echo "$exported") <(echo "$declared"); exit 1; }
    [ "$defined" = "$exported" ] || { echo "FAILED: the archive defines (<) what is not exported (>):"
        diff <(echo "$defined") <(echo "$exported"); exit 1; }
    ;;
readme)
    diff <(sed -n '/^```c$/,/^```$/ { /^```/d; p }' "$host/../../../README.md") "$host/example.c" ||
        { echo "FAILED: the example in README.md (<) is not tests/install/host/example.c (>)"; exit 1; }
    ;;
esac
