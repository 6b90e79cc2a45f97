-- Memory of a cache in pages.

local asking = require "reproduction.ask"
local ask, with = asking.ask, asking.with
local markdown = require "reproduction.tables".markdown

local OPT_13B = { layers = 40, heads = 40, head_dim = 128 }

local function pages(more)
  return ask(with({ arch = "a100_40", workload = "paged_decode", heads = OPT_13B.heads, head_dim = OPT_13B.head_dim, seqlen_q = 1,
                    page_size = 16, page_layout = "scattered", layout = "bshd" }, more))
end

local function print_pages()
  local requests = {
    "37:1290:412:2005:188:733:96:1544:301:64:878:1170:523:240:1821:660",
    "64:96:133:178:221:264:310:362:415:471:534:605:689:795:945:1902",
  }
  local lines = {}
  for _, lengths in ipairs(requests) do
    local r = pages { lengths = lengths, seqlen_kv = 2048 }
    local used = 2048 * (1 - r["foretile__kv_cache_contiguous_waste"] / 100)
    lines[#lines + 1] = { ("a buffer of 2048 tokens a request; 16 requests, %.0f tokens in the mean"):format(used), "60 to 80 %",
                          ("%.1f %%"):format(r["foretile__kv_cache_contiguous_waste"]) }
    lines[#lines + 1] = { "pages of 16 tokens, the same", "under 4 %", ("%.1f %%"):format(r["foretile__kv_cache_waste"]) }
  end
  local own = pages { lengths = "78x6" }["foretile__kv_cache_bytes"]
  for _, prefix in ipairs { 19, 39, 52, 65 } do
    local shared = pages { lengths = "78x6", page_layout = "shared_prefix", prefix = prefix }["foretile__kv_cache_bytes"]
    lines[#lines + 1] = { ("saved by sharing: six beams of 78 tokens, the first %d in common"):format(prefix), "55 % at best",
                          ("%.1f %%"):format(100 * (own - shared) / own) }
  end
  local token = pages { lengths = "1600" }["foretile__kv_cache_bytes"] / 1600 * OPT_13B.layers
  lines[#lines + 1] = { "bytes of a token, 40 layers of 40 heads of 128 (13 to 14 billion parameters), fp16", "0.7 to 1 MB",
                        ("%.2f MB"):format(token / 1e6) }
  print("### PagedAttention")
  print()
  print("arXiv:2309.06180. 19 and 78 tokens are the mean prompt and the mean prompt with its answer of the paper's Alpaca trace.")
  print()
  markdown({ "", "published", "simulated" }, lines)
end

return print_pages
