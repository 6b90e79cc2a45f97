#!/bin/bash
# report: the page is written whole or not at all, and says why where it is not.
. "$(dirname "$0")/expect.sh"
Q="--arch h200,v100 --workload flash2_fwd heads=8 seqlen=1024 head_dim=64"

# databases that cannot be used, and none is made
refused 2 "foretile.db: No such file" "$FAKE" report
refused 2 "none.db: No such file" "$FAKE" report --db none.db -o page.html
: >empty.db
refused 2 "empty.db: an empty file" "$FAKE" report --db empty.db -o page.html
echo "no database, but long enough to have the sixteen bytes that one begins with" >diary
refused 2 "diary: not a database" "$FAKE" report --db diary -o page.html
refused 2 "report takes no my.db" "$FAKE" report my.db
refused 2 "has no option --json" "$FAKE" report --json
[ ! -e none.db ] && [ ! -s empty.db ] && [ ! -e page.html ] || bad "something was written for a database that is none"

# the page
accepted "" "$FAKE" explore $Q block_m=64,128 block_n=32,64 --db my.db
accepted "" "$FAKE" report --db my.db -o page.html
[ ! -s out ] || bad "something on standard output beside the file"
accepted "<title>Foretile: my.db</title>" "$FAKE" report --db my.db
cmp -s out page.html || bad "standard output and the file differ"
head -n 1 page.html | grep -qx '<!DOCTYPE html>' && tail -n 1 page.html | grep -qx '</html>' || bad "not a whole page"
[ "$(sed -n '/<section id=predictions>/,/<\/section>/p' page.html | grep -c '^<tr><td>')" -eq 8 ] ||
  bad "not a row a prediction"
[ "$(grep -c '<figcaption>h200: \|<figcaption>v100: ' page.html)" -eq 2 ] || bad "not a roofline a GPU"
! grep -qE 'https?:|src=' page.html || bad "the page takes something from elsewhere"
cp my.db before.db
accepted "" "$FAKE" report --db my.db -o page.html
cmp -s my.db before.db || bad "a report changed the database"

# where no page can be
refused 2 "no_folder/page.html: No such file" "$FAKE" report --db my.db -o no_folder/page.html
mkdir folder
refused 2 "folder: Is a directory" "$FAKE" report --db my.db -o folder
refused 2 "No space left" sh -c '"$1" report --db my.db >/dev/full' sh "$FAKE"

# measured cases: the figures of validate, which sees the same predictions
head -n 9 "$FTL_SOURCE_DIR/kernels/measurements/attention_flash2_ncu.csv" >good.csv
accepted "" "$FAKE" import good.csv --db measured.db
accepted "" "$FAKE" validate good.csv --db measured.db --json
expected=$(sed -n 's/.*"kind": "statistics", "part": "yours", "quantity": "cycles".* "mean": \([0-9.]*\).*/\1/p' out)
accepted "" "$FAKE" report --db measured.db -o measured.html
expected=$(printf '%.2f' "$expected")
grep -q "<td>yours<td>all<td>cycles<td>%<td>8<td>$expected<td>" measured.html ||
  bad "cycles of one's own rows are not $expected % off, as validate has them"

# a database that may only be read, as nobody: root may write anything
chmod 755 . && mkdir closed && cp my.db closed/my.db && chmod 444 closed/my.db && chmod 555 closed
cp "$FAKE" fake && chmod 755 fake
AS_NOBODY=""
[ "$(id -u)" -ne 0 ] || AS_NOBODY="setpriv --reuid 65534 --clear-groups"
if $AS_NOBODY ./fake --version >/dev/null 2>&1; then
  accepted "<title>Foretile: my.db</title>" $AS_NOBODY ./fake report --db closed/my.db
fi

# five thousand predictions: seconds of host time are generous, for a loaded machine
accepted "" "$FAKE" explore --arch h200 --workload flash2_fwd heads=8 seqlen=1024 head_dim=64 --quiet --db large.db \
  block_m=$(seq -s, 16 16 800) block_n=$(seq -s, 16 16 800) num_warps=4,8
accepted "" timeout 5 "$FAKE" report --db large.db -o large.html
[ "$(wc -c <large.html)" -lt 4000000 ] || bad "a page of 5000 predictions is $(wc -c <large.html) bytes"

# no page takes the place of a database
cp my.db kept.db
refused 2 "my.db: a database, which is not written over" "$FAKE" report --db my.db -o my.db
cmp -s my.db kept.db || bad "a page was written over its database"

# a page that cannot be written leaves the old one, and nothing beside it
cp page.html old.html
refused 2 "page.html: File too large" bash -c 'ulimit -f 200; exec "$@"' bash "$FAKE" report --db large.db -o page.html
cmp -s page.html old.html || bad "a page that could not be written replaced the old one"
[ ! -e page.html.new ] || bad "half a page was left"
finish
