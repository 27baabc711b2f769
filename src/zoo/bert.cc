// BERT (Devlin et al., 2018), the uncased base model with its pooler, on one segment of fixed
// length without padding: the attention mask is left out.
#include <cmath>
#include <numeric>
#include <string>
#include <string_view>
#include <vector>

#include "zoo/layers.h"
#include "zoo/networks.h"

namespace tandem::zoo {
namespace {

constexpr float kEpsilon = 1e-12f;

struct BertOptions {
  int64_t vocabulary;
  int64_t positions;  // that the model could take
  int64_t tokens;     // that this graph takes
  int64_t width;
  int64_t heads;
  int depth;
};

Value embeddings(GraphBuilder& g, const Value& ids, const BertOptions& o) {
  // Together of power one, though the normalization behind would mend anything.
  constexpr float kStddev = 0.58f;
  const auto scope = g.scope("embeddings");
  const Shape row = {1, o.tokens};
  std::vector<int64_t> positions(static_cast<size_t>(o.tokens));
  const Value segments = g.integers(positions, row);
  std::iota(positions.begin(), positions.end(), 0);

  const Value words = g.parameter("word_embeddings.weight", {o.vocabulary, o.width}, kStddev);
  const Value types = g.parameter("token_type_embeddings.weight", {2, o.width}, kStddev);
  const Value places = g.parameter("position_embeddings.weight", {o.positions, o.width}, kStddev);
  Value x = g.add(g.gather(words, ids, 0), g.gather(types, segments, 0));
  x = g.add(x, g.gather(places, g.integers(positions, row), 0));
  return g.layer_norm(x, "LayerNorm", kEpsilon);
}

Value self_attention(GraphBuilder& g, const Value& x, int64_t heads) {
  const int64_t tokens = x.dim(1), width = x.dim(2), depth = width / heads;
  const auto project = [&](std::string_view name, const Shape& permutation) {
    const Value y = g.linear(x, name, width);
    return g.transpose(g.reshape(y, {1, tokens, heads, depth}), permutation);
  };
  const Value query = project("query", {0, 2, 1, 3});
  const Value key = project("key", {0, 2, 3, 1});
  const Value value = project("value", {0, 2, 1, 3});
  const Value root = g.scalar(std::sqrt(static_cast<float>(depth)));
  const Value weights = g.softmax(g.div(g.matmul(query, key), root), -1);
  const Value joined = g.transpose(g.matmul(weights, value), {0, 2, 1, 3});
  return g.linear(g.reshape(joined, {1, tokens, width}), "output", width);
}

void bert(GraphBuilder& g, const BertOptions& o) {
  const Value ids = g.input("input_ids", {1, o.tokens}, onnx::TensorProto::INT64);
  Value x = embeddings(g, ids, o);
  for (int i = 0; i < o.depth; ++i) {
    const auto layer = g.scope("encoder.layer." + std::to_string(i));
    {
      const auto scope = g.scope("attention");
      x = g.layer_norm(g.add(self_attention(g, x, o.heads), x), "LayerNorm", kEpsilon);
    }
    Value y = gelu(g, g.linear(x, "intermediate", 4 * o.width));
    y = g.linear(y, "output", o.width);
    x = g.layer_norm(g.add(y, x), "output.LayerNorm", kEpsilon);
  }
  const Value pooled = g.tanh(g.linear(g.gather(x, g.integer(0), 1), "pooler", o.width));
  g.output(x, "last_hidden_state");
  g.output(pooled, "pooler_output");
}

}  // namespace

void bert_base(GraphBuilder& g) {
  bert(g, {.vocabulary = 30522,
           .positions = 512,
           .tokens = 128,
           .width = 768,
           .heads = 12,
           .depth = 12});
}

void tiny_bert(GraphBuilder& g) {
  bert(g, {.vocabulary = 100, .positions = 20, .tokens = 12, .width = 24, .heads = 3, .depth = 2});
}

}  // namespace tandem::zoo
