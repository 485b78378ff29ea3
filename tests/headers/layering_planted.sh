#!/usr/bin/env bash
# layering_planted.sh SOURCE_DIR: the test of layering.sh. Plants one violation at a time in an empty tree and expects
# exactly that one to be reported; then plants what is allowed and expects silence.
set -euo pipefail
check=$1/tests/headers/layering.sh
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
failed=0

# plant FILE LINE: a tree that holds this file alone, with this line second.
plant() {
    rm -rf "${tree:?}"/*
    mkdir -p "$tree"/{include,engine,tools} "$tree/$(dirname "$1")"
    printf '/* planted */\n%s\n' "$2" >"$tree/$1"
}

# refused FILE LINE TEXT
refused() {
    local output
    plant "$1" "$2"
    if output=$("$check" "$tree"); then
        echo "FAILED: not refused: $1: $2"
        failed=1
    elif [[ $output != "$1:"[12]": $3"*"1 violations"* ]]; then
        echo "FAILED: $1: $2: expected '$3', got: $output"
        failed=1
    fi
}

# accepted FILE LINE
accepted() {
    local output
    plant "$1" "$2"
    if ! output=$("$check" "$tree"); then
        echo "FAILED: refused: $1: $2: $output"
        failed=1
    fi
}

refused engine/base/a.c '#include "vk/gpu.h"' 'engine/base must not include vk/gpu.h'
refused engine/model/a.c '#include "layout/shard.h"' 'engine/model must not include'
refused engine/layout/a.c '#include "vk/gpu.h"' 'engine/layout must not include'
refused engine/kernels/a.c '#  include "vk/gpu.h"' 'engine/kernels must not include'
refused engine/exchange/a.c '#include "vk/gpu.h"' 'engine/exchange must not include'
refused engine/vk/a.c '#include "exchange/sum.h"' 'engine/vk must not include'
refused engine/vk/a.c '#include "../exec/call.h"' 'engine/vk must not include'
refused engine/exec/a.c '#include "api/api.h"' 'engine/exec must not include'
refused tools/a.c '#include "exec/call.h"' 'tools must not include'
refused tools/verify/a.c '#include "vk/gpu.h"' 'tools/verify must not include'
refused include/vkattn/a.h '#include "base/error.h"' 'include/vkattn must not include'
refused engine/exec/a.c '#include <volk.h>' 'Vulkan headers belong'
refused engine/api/a.h '#include <vulkan/vulkan.h>' 'Vulkan headers belong'
refused engine/vk/a.c '#include <sys/stat.h>' 'POSIX headers belong'
refused engine/exec/a.c '#include <pthread.h>' 'POSIX headers belong'
refused tools/a.c '#include <unistd.h>' 'POSIX headers belong'
refused engine/vk/a.c '#include <dlfcn.h>' 'POSIX headers belong'
refused engine/vk/a.c 'const char *home = getenv("HOME");' 'getenv belongs'
refused engine/exec/a.c 'if (info->vendor_id == 0x10de)' 'tests of a vendor'
refused engine/vk/a.c 'switch (properties.vendorID) {' 'tests of a vendor'
refused engine/vk/a.c 'if (VK_DRIVER_ID_MESA_LLVMPIPE == id)' 'tests of a vendor'
refused engine/other/a.c '' 'folder engine/other has no rule'

accepted engine/exec/a.c '#include "vk/gpu.h"'
accepted engine/api/a.c '#include "exec/call.h"'
accepted engine/vk/a.c '#include <volk.h>'
accepted engine/vk/quirks.c 'if (info->vendor_id == 0x10de)'
accepted engine/vk/a.c 'info->vendor_id = properties.vendorID;'
accepted engine/base/a.c '#include <pthread.h>'
accepted engine/base/files.c 'return getenv(name);'
accepted engine/kernels/a.h '#include "../../shaders/params.h"'
accepted tools/a.c '#include "verify/verify.h"'

[ "$failed" -eq 0 ] && echo "every planted violation was reported"
exit "$failed"
