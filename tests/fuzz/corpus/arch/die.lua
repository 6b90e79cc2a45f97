local s = "a source"
return die "x" { l2 = { ways = datasheet(16, s), size_bytes = measured(2^20 // 1, s), replacement = guess("lru", [[why]]) },
  sm = { max_warps = override(64), ["max_ctas"] = guess(8, 'x') } }
