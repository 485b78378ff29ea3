#!/usr/bin/env bash
# alone.sh INCLUDE_DIR C_COMPILER CXX_COMPILER HEADER...
# Compiles every public header alone, twice over, as C11 and as C++17, with warnings as errors.
set -euo pipefail
include=$1 c=$2 cxx=$3
shift 3

warnings=(-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror)
failed=0

# compile HEADER LANGUAGE COMMAND...: a unit that includes the header and then includes it again.
compile() {
    local header=$1 language=$2
    shift 2
    if ! printf '#include "%s"\n#include "%s"\nextern int declaration;\n' "$header" "$header" |
        "$@" "${warnings[@]}" -I "$include" -fsyntax-only -x "$language" -; then
        echo "FAILED: $header alone as $language"
        failed=1
    fi
}

[ $# -gt 0 ] || { echo "no headers given"; exit 1; }
for path in "$include"/vkattn/*.h; do
    case " $* " in
    *" $path "*) ;;
    *) echo "FAILED: $path is not in the list of installed headers"; failed=1 ;;
    esac
done
for path in "$@"; do
    header=${path#"$include"/}
    compile "$header" c "$c" -std=c11
    compile "$header" c++ "$cxx" -std=c++17
done
[ "$failed" -eq 0 ] && echo "$# headers compile alone as C11 and C++17"
exit "$failed"
