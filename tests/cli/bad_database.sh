#!/bin/bash
# Databases that cannot be used: one clear line, status 2, and what was there is as before.
. "$(dirname "$0")/expect.sh"
Q="--arch h200 --workload flash2_fwd heads=8 seqlen=1024 head_dim=64"

echo "dear diary, today I learned that a database begins with sixteen bytes of its own, and that I do not" >diary
cp diary copy
refused 2 "diary: not a database" "$FAKE" predict $Q --db diary
cmp -s diary copy || bad "a file that is no database was changed"
refused 2 "the folder no_folder: No such file" "$FAKE" predict $Q --db no_folder/results.db
mkdir folder
refused 2 "folder: not a file" "$FAKE" predict $Q --db folder
refused 2 "/dev/null: not a file" "$FAKE" predict $Q --db /dev/null

# A file-size limit refuses a write as a full disk does.
refused 2 "too_large.db" bash -c 'ulimit -f 8; exec "$@"' bash "$FAKE" predict $Q --db too_large.db
[ ! -e too_large.db ] || bad "a database that could not be made was left behind"
accepted "time" "$FAKE" predict $Q --db grown.db
cp grown.db before.db
refused 2 "grown.db" bash -c 'ulimit -f 8; exec "$@"' bash "$FAKE" predict $Q block_m=64 --db grown.db
accepted "time" "$FAKE" predict $Q --db grown.db

# A full disk, where this machine lets us make a small one.
if [ "$(id -u)" -eq 0 ] && mkdir small && mount -t tmpfs -o size=256k tmpfs small 2>/dev/null; then
  refused 2 "small/results.db: the disk is full" "$FAKE" explore $Q block_m=$(seq -s, 16 16 1024) --db small/results.db
  umount small
fi

# Read-only. Root may write anything, so the command runs as nobody.
accepted "time" "$FAKE" predict $Q --db mine.db
chmod 444 mine.db
mkdir closed && chmod 555 closed
if [ "$(id -u)" -eq 0 ]; then
  chmod 755 .
  cp "$FAKE" fake && chmod 755 fake
  if setpriv --reuid 65534 --clear-groups ./fake --version >/dev/null 2>&1; then
    refused 2 "mine.db: read-only" env FORETILE_ARCH_MODELS="$FTL_SOURCE_DIR/arch_models" \
      setpriv --reuid 65534 --clear-groups ./fake predict $Q --db mine.db
    refused 2 "closed/results.db: cannot be created: Permission denied" \
      env FORETILE_ARCH_MODELS="$FTL_SOURCE_DIR/arch_models" \
      setpriv --reuid 65534 --clear-groups ./fake predict $Q --db closed/results.db
  fi
else
  refused 2 "mine.db: read-only" "$FAKE" predict $Q --db mine.db
  refused 2 "closed/results.db: cannot be created: Permission denied" "$FAKE" predict $Q --db closed/results.db
fi

finish
