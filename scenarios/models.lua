-- The attention of well-known language models on a GPU: reading a prompt (prefill), then writing a token (decode).
--
--   foretile run scenarios/models.lua
--   foretile run scenarios/models.lua -- a100_80           (another GPU)
--   foretile run scenarios/models.lua -- h200 16           (decode for so many sequences at once; 8 otherwise)
--
-- Add a model: a line with what its configuration file says. `window`: keys that a query sees at most (sliding window).
-- `head_dim_v`: columns of its values where they are not those of its keys. `latent`: with multi-head latent attention
-- (DeepSeek) what the cache has of a token in a layer, elements from which a prompt's keys and values are made; heads of
-- 576 columns that attend to them as they are when a token is written are no workload here.

local ft = require "foretile"
local gpu = arg[1] or "h200"
local batch = assert(math.tointeger(tonumber(arg[2] or 8)), "how many sequences: a whole number")

local models = {
  { name = "GPT-2 medium",        layers = 24, heads = 16, kv_heads = 16, head_dim = 64,  context = 1024 },
  { name = "Llama-3 8B",          layers = 32, heads = 32, kv_heads = 8,  head_dim = 128, context = 8192 },
  { name = "Llama-3 70B",         layers = 80, heads = 64, kv_heads = 8,  head_dim = 128, context = 8192 },
  { name = "Mistral 7B v0.1",     layers = 32, heads = 32, kv_heads = 8,  head_dim = 128, context = 32768, window = 4096 },
  { name = "Qwen2.5 7B",          layers = 28, heads = 28, kv_heads = 4,  head_dim = 128, context = 32768 },
  { name = "DeepSeek-V2 Lite",    layers = 27, heads = 16, kv_heads = 16, head_dim = 192, context = 32768, head_dim_v = 128, latent = 576 },
  { name = "Llama-3.1 8B, 128 k", layers = 32, heads = 32, kv_heads = 8,  head_dim = 128, context = 131072 },
}

local function ask(model, workload, more)
  local question = {
    arch = gpu, workload = workload, heads = model.heads, kv_heads = model.kv_heads, head_dim = model.head_dim,
    head_dim_v = model.head_dim_v, seqlen_kv = model.context, causal = true, window = model.window,
  }
  for key, value in pairs(more) do question[key] = value end
  return ft.predict(question)
end

-- One prompt as long as the context: FlashAttention-3 where the GPU can run it, else FlashAttention-2, and where its
-- tiles do not fit those that do.
local function prefill(model)
  local r = ask(model, "flash3_fwd", { seqlen_q = model.context, block_n = 128 })
  if r.feasible then return r end
  r = ask(model, "flash2_fwd",
          { seqlen_q = model.context, block_m = 128, block_n = 64, num_warps = 4, schedule = "interleaved" })
  return r.feasible and r or ask(model, "flash2_fwd", { seqlen_q = model.context })
end

local bytes_per_element = 2
local function kv_bytes_per_token(model)
  local elements = model.latent or model.kv_heads * (model.head_dim + (model.head_dim_v or model.head_dim))
  return model.layers * elements * bytes_per_element
end

print(string.format("Attention on %s, fp16: all layers of a prompt as long as the context, and of one more token of %d sequences",
                    ft.arch(gpu).name, batch))
print("model                 context  KV kB/token | prefill      ms  TFLOP/s  HBM GB | decode  us  HBM MB  splits  of the cache")
for _, model in ipairs(models) do
  local p = prefill(model)
  local prompt = string.format("%-20s %8d %12.1f | %-10s %5.1f %8.0f %7.2f |", model.name, model.context,
                               kv_bytes_per_token(model) / 1e3, p.workload, model.layers * p.time_us / 1e3, p.tflops,
                               model.layers * p.hbm / 1e9)
  if model.latent then
    print(prompt .. string.format(" %10s %7s %7s %14s", "-", "-", "-", "-"))
  else
    local d = ask(model, "flash_decode", { batch = batch, seqlen_q = 1 })
    local cache = kv_bytes_per_token(model) // model.layers * model.context * batch
    print(prompt .. string.format(" %10.0f %7.0f %7d %12.0f %%", model.layers * d.time_us, model.layers * d.hbm_read / 1e6,
                                  d.splits, 100 * d.hbm_read / cache))
  end
end
print("\nof the cache: what decode reads of HBM over the keys and values of the sequences; a window reads its own part.")
