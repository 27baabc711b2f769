// Vision transformers: ViT (Dosovitskiy et al., 2020) as torchvision has it, and DeiT (Touvron et
// al., 2020) as timm has it. Same arithmetic, but different operators in the attention.
#include <cmath>
#include <string>
#include <vector>

#include "zoo/layers.h"
#include "zoo/networks.h"

namespace tandem::zoo {
namespace {

using Attention = Value (*)(GraphBuilder&, const Value&, int64_t heads);

struct VitOptions {
  int64_t image;
  int64_t patch;
  int64_t width;
  int depth;
  int64_t heads;
  int64_t classes;
  Attention attention;
};

// torch.nn.MultiheadAttention: tokens first, then batch; query, key and value are unpacked by
// views; the scale is split evenly over query and key; the last projection sees a matrix.
Value torch_attention(GraphBuilder& g, const Value& x, int64_t heads) {
  const auto scope = g.scope("self_attention");
  const int64_t batch = x.dim(0), tokens = x.dim(1), width = x.dim(2), depth = width / heads;
  Value packed = g.linear(g.transpose(x, {1, 0, 2}), "in_proj", 3 * width);
  packed = g.unsqueeze(g.reshape(packed, {tokens, batch, 3, width}), 0);
  packed = g.squeeze(g.transpose(packed, {3, 1, 2, 0, 4}), -2);
  std::vector<Value> heads_of;
  for (const int64_t part : {0, 1, 2}) {
    Value y = g.gather(packed, g.integer(part), 0);
    y = g.transpose(g.reshape(y, {tokens, batch * heads, depth}), {1, 0, 2});
    heads_of.push_back(g.reshape(y, {batch, heads, tokens, depth}));
  }
  const Value scale = g.scalar(std::sqrt(std::sqrt(1.0f / static_cast<float>(depth))));
  const Value query = g.mul(heads_of[0], scale);
  const Value key = g.mul(g.transpose(heads_of[1], {0, 1, 3, 2}), scale);
  const Value weights = g.softmax(g.matmul(query, key), -1);
  Value y = g.transpose(g.matmul(weights, heads_of[2]), {2, 0, 1, 3});
  y = g.linear(g.reshape(y, {tokens * batch, width}), "out_proj", width);
  return g.transpose(g.reshape(y, {tokens, batch, width}), {1, 0, 2});
}

// timm: one five-dimensional transposition, and the scale on the query.
Value timm_attention(GraphBuilder& g, const Value& x, int64_t heads) {
  const auto scope = g.scope("attn");
  const int64_t batch = x.dim(0), tokens = x.dim(1), width = x.dim(2), depth = width / heads;
  Value packed = g.linear(x, "qkv", 3 * width);
  packed = g.transpose(g.reshape(packed, {batch, tokens, 3, heads, depth}), {2, 0, 3, 1, 4});
  const Value query = g.gather(packed, g.integer(0), 0);
  const Value key = g.gather(packed, g.integer(1), 0);
  const Value value = g.gather(packed, g.integer(2), 0);
  const Value scaled = g.mul(query, g.scalar(1.0f / std::sqrt(static_cast<float>(depth))));
  const Value weights = g.softmax(g.matmul(scaled, g.transpose(key, {0, 1, 3, 2})), -1);
  const Value y = g.transpose(g.matmul(weights, value), {0, 2, 1, 3});
  return g.linear(g.reshape(y, {batch, tokens, width}), "proj", width);
}

Value encoder_block(GraphBuilder& g, Value x, const VitOptions& o) {
  x = g.add(x, o.attention(g, g.layer_norm(x, "ln_1", 1e-6f), o.heads));
  Value y = g.linear(g.layer_norm(x, "ln_2", 1e-6f), "mlp.fc1", 4 * o.width);
  y = g.linear(gelu(g, y), "mlp.fc2", o.width);
  return g.add(x, y);
}

void vit(GraphBuilder& g, const VitOptions& o) {
  Value x = g.input("input", {1, 3, o.image, o.image});
  x = g.conv(x, "conv_proj", {.out = o.width, .kernel = o.patch, .stride = o.patch, .bias = true});
  x = g.transpose(g.reshape(x, {1, o.width, -1}), {0, 2, 1});
  const Value token = g.expand(g.parameter("class_token", {1, 1, o.width}, 0.5f), {1, 1, o.width});
  x = g.concat({token, x}, 1);
  x = g.add(x, g.parameter("pos_embedding", {1, x.dim(1), o.width}, 0.5f));
  for (int i = 0; i < o.depth; ++i) {
    const auto scope = g.scope("encoder." + std::to_string(i));
    x = encoder_block(g, x, o);
  }
  x = g.layer_norm(x, "ln", 1e-6f);
  x = g.gather(x, g.integer(0), 1);  // the class token
  g.output(g.linear(x, "head", o.classes), "logits");
}

VitOptions vit_base(int64_t patch) {
  return {.image = 224,
          .patch = patch,
          .width = 768,
          .depth = 12,
          .heads = 12,
          .classes = 1000,
          .attention = torch_attention};
}

VitOptions tiny(Attention attention) {
  return {.image = 32,
          .patch = 8,
          .width = 24,
          .depth = 2,
          .heads = 3,
          .classes = 10,
          .attention = attention};
}

}  // namespace

void vit_b_16(GraphBuilder& g) { vit(g, vit_base(16)); }
void vit_b_32(GraphBuilder& g) { vit(g, vit_base(32)); }

void deit_tiny(GraphBuilder& g) {
  vit(g, {.image = 224,
          .patch = 16,
          .width = 192,
          .depth = 12,
          .heads = 3,
          .classes = 1000,
          .attention = timm_attention});
}

void tiny_vit(GraphBuilder& g) { vit(g, tiny(torch_attention)); }
void tiny_deit(GraphBuilder& g) { vit(g, tiny(timm_attention)); }

}  // namespace tandem::zoo
