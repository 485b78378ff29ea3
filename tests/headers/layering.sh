#!/usr/bin/env bash
# layering.sh SOURCE_DIR: checks the rules that keep the folders apart. Prints every violation; exit status 1 if any.
#
# Includes go down only: tools see include/, engine/base and tools/verify; api sees exec; exec sees kernels, exchange, vk,
# layout and model, which do not see each other; all see base. Vulkan's headers stay in engine/vk, POSIX in engine/base,
# getenv in engine/base/files.c, and tests of a vendor or driver id in engine/vk/quirks.c (what a driver does wrong) and
# duplicates.c (which of two drivers shows a GPU).
set -euo pipefail
cd "$1"

# For every folder, what the first component of a quoted include may be. A plain file name is one of the same folder.
find include engine tools -name '*.[ch]' -print0 | sort -z | xargs -0 awk '
BEGIN {
    sees["include/vkattn"] = "vkattn"
    sees["engine/base"] = "base vkattn"
    sees["engine/model"] = "model base vkattn"
    sees["engine/layout"] = "layout base vkattn"
    sees["engine/vk"] = "vk base vkattn"
    sees["engine/kernels"] = "kernels shaders base vkattn"
    sees["engine/exchange"] = "exchange base vkattn"
    sees["engine/exec"] = "exec kernels shaders exchange vk layout model base vkattn"
    sees["engine/api"] = "api exec kernels shaders exchange vk layout model base vkattn"
    sees["tools"] = "bench verify base vkattn"
    sees["tools/bench"] = "bench base vkattn"
    sees["tools/verify"] = "verify base vkattn"
}
function violation(text) {
    printf "%s:%d: %s\n", FILENAME, FNR, text
    violations++
}
function allowed(folder, first,    words, count, i) {
    count = split(sees[folder], words, " ")
    for (i = 1; i <= count; i++)
        if (words[i] == first)
            return 1
    return 0
}
FNR == 1 {
    folder = FILENAME
    sub(/\/[^\/]*$/, "", folder)
    if (!(folder in sees))
        violation("folder " folder " has no rule in layering.sh")
}
/^[ \t]*#[ \t]*include[ \t]*"/ {
    split($0, part, "\"")
    path = part[2]
    while (sub(/^\.\.\//, "", path)) {}
    if (path ~ /\//) {
        first = path
        sub(/\/.*/, "", first)
        if (!allowed(folder, first))
            violation(folder " must not include " part[2])
    }
}
/^[ \t]*#[ \t]*include/ {
    if ($0 ~ /(volk|vulkan)/ && folder != "engine/vk")
        violation("Vulkan headers belong in engine/vk")
    if ($0 ~ /<(sys|netinet|arpa|net)\// || $0 ~ /<(unistd|pthread|fcntl|dirent|poll|sched|semaphore|dlfcn|strings|termios|spawn|glob|ftw|netdb|signal)\.h>/)
        if (folder != "engine/base")
            violation("POSIX headers belong in engine/base")
}
/(^|[^A-Za-z0-9_])(secure_)?getenv[ \t]*\(/ && FILENAME != "engine/base/files.c" {
    violation("getenv belongs in engine/base/files.c")
}
tolower($0) ~ /(vendor_?id|driver_?id)[^;,{]*[!=]=|[!=]=[^;,{]*(vendor_?id|driver_?id)|switch[ \t]*\(.*(vendor_?id|driver_?id)|vk_vendor_id_|vk_driver_id_/ {
    if (FILENAME != "engine/vk/quirks.c" && FILENAME != "engine/vk/duplicates.c")
        violation("tests of a vendor or driver belong in engine/vk/quirks.c")
}
END {
    if (violations > 0) {
        printf "%d violations of the layering\n", violations
        exit 1
    }
    print "the layering holds"
}'
