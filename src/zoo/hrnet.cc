// HRNet (Wang et al., 2019) for classification: branches of several resolutions side by side, which
// exchange what they found after every module.
#include <span>
#include <string>
#include <vector>

#include "zoo/layers.h"
#include "zoo/networks.h"
#include "zoo/resnet.h"

namespace tandem::zoo {
namespace {

using Branches = std::vector<Value>;

std::string numbered(const char* name, size_t number) { return name + std::to_string(number); }

// Brings `branches` to `channels`, one entry a branch; one that is new starts from the last.
Branches transition(GraphBuilder& g, const Branches& branches, std::span<const int64_t> channels,
                    std::string_view name) {
  const auto scope = g.scope(name);
  Branches result;
  for (size_t i = 0; i < channels.size(); ++i) {
    if (i >= branches.size()) {
      result.push_back(conv_bn(g, branches.back(), numbered("branch", i),
                               {.out = channels[i], .kernel = 3, .stride = 2, .pad = 1}));
    } else if (branches[i].dim(1) != channels[i]) {
      result.push_back(conv_bn(g, branches[i], numbered("branch", i),
                               {.out = channels[i], .kernel = 3, .pad = 1}));
    } else {
      result.push_back(branches[i]);
    }
  }
  return result;
}

// Branch `from` in the resolution and with the channels of branch `to`.
Value resampled(GraphBuilder& g, const Branches& branches, size_t from, size_t to) {
  Value x = branches[from];
  const int64_t channels = branches[to].dim(1);
  const auto scope = g.scope(numbered("from", from));
  if (from > to) {
    x = conv_bn(g, x, "narrow", {.out = channels}, Activation::kNone);
    return g.upsample_nearest(x, int64_t{1} << (from - to));
  }
  for (size_t level = from; level < to; ++level) {
    const bool last = level + 1 == to;
    x = conv_bn(g, x, numbered("down", level),
                {.out = last ? channels : x.dim(1), .kernel = 3, .stride = 2, .pad = 1},
                last ? Activation::kNone : Activation::kRelu);
  }
  return x;
}

// `depth` basic blocks on every branch, then every branch becomes a sum over all.
Branches exchange_module(GraphBuilder& g, Branches branches, int depth, std::string_view name) {
  const auto module_scope = g.scope(name);
  for (size_t i = 0; i < branches.size(); ++i) {
    const auto branch_scope = g.scope(numbered("branch", i));
    for (int block = 0; block < depth; ++block) {
      const auto scope = g.scope(std::to_string(block));
      branches[i] = basic_block(g, branches[i], branches[i].dim(1), 1);
    }
  }
  Branches fused;
  for (size_t to = 0; to < branches.size(); ++to) {
    const auto scope = g.scope(numbered("fuse", to));
    Value sum = resampled(g, branches, 0, to);
    for (size_t from = 1; from < branches.size(); ++from) {
      sum = g.add(sum, resampled(g, branches, from, to));
    }
    fused.push_back(g.relu(sum));
  }
  return fused;
}

// Widens every branch, then adds them up from the finest to the coarsest.
Value merge_for_classification(GraphBuilder& g, const Branches& branches, int64_t channels) {
  Value merged;
  for (size_t i = 0; i < branches.size(); ++i) {
    const auto scope = g.scope(numbered("head", i));
    const Value wide = bottleneck_block(g, branches[i], channels << i, 1);
    if (i == 0) {
      merged = wide;
      continue;
    }
    const ConvOptions halve = {
        .out = wide.dim(1), .kernel = 3, .stride = 2, .pad = 1, .bias = true};
    merged = g.add(wide, conv_bn(g, merged, "down", halve));
  }
  return merged;
}

}  // namespace

void hrnet_w18(GraphBuilder& g) {
  constexpr int64_t kChannels[] = {18, 36, 72, 144};
  constexpr int kModules[] = {1, 4, 3};  // of the stages with two, three and four branches

  Value x = g.input("input", {1, 3, 224, 224});
  x = conv_bn(g, x, "stem1", {.out = 64, .kernel = 3, .stride = 2, .pad = 1});
  x = conv_bn(g, x, "stem2", {.out = 64, .kernel = 3, .stride = 2, .pad = 1});
  for (int i = 0; i < 4; ++i) {
    const auto scope = g.scope("layer1." + std::to_string(i));
    x = bottleneck_block(g, x, 64, 1);
  }
  Branches branches = {x};
  for (size_t stage = 0; stage < std::size(kModules); ++stage) {
    branches = transition(g, branches, std::span(kChannels).first(stage + 2),
                          numbered("transition", stage + 1));
    const auto scope = g.scope(numbered("stage", stage + 2));
    for (int i = 0; i < kModules[stage]; ++i) {
      branches = exchange_module(g, branches, 4, std::to_string(i));
    }
  }
  x = merge_for_classification(g, branches, 32);
  x = conv_bn(g, x, "final_layer", {.out = 2048, .bias = true});
  g.output(classify(g, x, "classifier"), "logits");
}

void tiny_hrnet(GraphBuilder& g) {
  Value x = g.input("input", {1, 3, 32, 32});
  x = conv_bn(g, x, "stem", {.out = 12, .kernel = 3, .stride = 2, .pad = 1});
  Branches branches = transition(g, {x}, std::vector<int64_t>{6, 10}, "transition1");
  branches = exchange_module(g, branches, 1, "stage2");
  branches = transition(g, branches, std::vector<int64_t>{6, 10, 14}, "transition2");
  branches = exchange_module(g, branches, 1, "stage3");
  g.output(classify(g, merge_for_classification(g, branches, 3), "classifier", 10), "logits");
}

}  // namespace tandem::zoo
