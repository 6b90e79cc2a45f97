# Sourced by the tests: $1 is the command with the formula, $2 the real one.
set -u
FAKE=$1
REAL=$2
SCENARIOS=$FTL_SOURCE_DIR/scenarios
WORK=$(mktemp -d)
trap 'rm -rf "$WORK"' EXIT
cd "$WORK" || exit 1
num_failed=0

bad() {
  num_failed=$((num_failed + 1))
  echo "FAILED: $*"
  sed 's/^/  stdout: /' out | head -n 5
  sed 's/^/  stderr: /' err | head -n 10
}

# refused STATUS TEXT COMMAND...: ends with the status, prints nothing, and one line on standard error with the text.
refused() {
  local status=$1 text=$2 got=0
  shift 2
  "$@" >out 2>err </dev/null || got=$?
  if [ "$got" -ne "$status" ]; then bad "status $got instead of $status: $*"; return; fi
  if [ "$(wc -l <err)" -ne 1 ]; then bad "not one line: $*"; return; fi
  if ! grep -qF -- "$text" err; then bad "the line lacks \"$text\": $*"; return; fi
  if [ -s out ]; then bad "something on standard output: $*"; fi
}

# accepted TEXT COMMAND...: ends with 0, has the text on standard output and nothing on standard error.
accepted() {
  local text=$1 got=0
  shift
  "$@" >out 2>err </dev/null || got=$?
  if [ "$got" -ne 0 ]; then bad "status $got: $*"; return; fi
  if [ -s err ]; then bad "something on standard error: $*"; return; fi
  if [ -n "$text" ] && ! grep -qF -- "$text" out; then bad "the output lacks \"$text\": $*"; fi
}

finish() {
  [ "$num_failed" -eq 0 ] && echo "all as expected"
  exit $((num_failed > 0))
}
