#include "graph/tensor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

namespace tandem {
namespace {

using ::testing::ElementsAre;

constexpr Layout kChannelsLast{Order::kChannelsLast, true};

TEST(Strides, InnermostExtentIsPaddedToALine) {
  EXPECT_THAT(strides_of({2, 3, 40}, {}), ElementsAre(144, 48, 1));
  EXPECT_EQ(span_of({2, 3, 40}, {}), 288);
  EXPECT_THAT(strides_of({1, 24, 5, 7}, kChannelsLast), ElementsAre(1120, 1, 224, 32));
  EXPECT_EQ(span_of({1, 24, 5, 7}, kChannelsLast), 1120);
}

TEST(Strides, DenseMeansNoPadding) {
  EXPECT_THAT(strides_of({2, 3, 40}, {Order::kRowMajor, false}), ElementsAre(120, 40, 1));
  EXPECT_THAT(strides_of({1, 24, 5, 7}, {Order::kChannelsLast, false}),
              ElementsAre(840, 1, 168, 24));
}

TEST(Strides, ExtentsOfOneAreNotPadded) {
  EXPECT_THAT(strides_of({1, 1000, 1, 1}, {}), ElementsAre(1008, 1, 1, 1));
  EXPECT_THAT(strides_of({1, 1000, 1, 1}, kChannelsLast), ElementsAre(1008, 1, 1008, 1008));
  EXPECT_THAT(strides_of({1, 1, 28, 28}, kChannelsLast), ElementsAre(896, 1, 32, 1));
  EXPECT_THAT(strides_of({1, 1}, {}), ElementsAre(1, 1));
  EXPECT_EQ(span_of({1, 1}, {}), 1);
  EXPECT_EQ(span_of({}, {}), 1);
}

TEST(HostTensor, StartsAsZeros) {
  const HostTensor tensor(DataType::kInt64, {2, 3});
  EXPECT_EQ(tensor.bytes.size(), 48u);
  EXPECT_EQ(tensor.data<int64_t>()[5], 0);
}

class CopyToView : public ::testing::TestWithParam<std::tuple<Dims, Layout>> {};

TEST_P(CopyToView, PutsEveryElementWhereItsStridesSayAndBack) {
  const auto& [dims, layout] = GetParam();
  HostTensor from(DataType::kFloat32, dims);
  std::iota(from.data<float>(), from.data<float>() + from.size(), 1.0f);
  std::vector<float> memory(static_cast<size_t>(span_of(dims, layout)), -1);
  const TensorView view{DataType::kFloat32, dims, strides_of(dims, layout), memory.data()};
  copy_to_view(from, view);

  // Walk in row-major order by hand.
  int64_t count = 0;
  Dims index(dims.size(), 0);
  for (int64_t i = 0; i < from.size(); ++i) {
    int64_t offset = 0;
    for (size_t d = 0; d < dims.size(); ++d) offset += index[d] * view.strides[d];
    ASSERT_EQ(memory[static_cast<size_t>(offset)], static_cast<float>(i + 1));
    ++count;
    for (size_t d = dims.size(); d-- > 0;) {
      if (++index[d] < dims[d]) break;
      index[d] = 0;
    }
  }
  const auto padding = std::count(memory.begin(), memory.end(), -1.0f);
  EXPECT_EQ(count + padding, span_of(dims, layout)) << "padding is left alone";

  HostTensor to;
  copy_from_view(view, to);
  EXPECT_EQ(to.dims, dims);
  EXPECT_EQ(to.bytes, from.bytes);
}

INSTANTIATE_TEST_SUITE_P(
    Tensor, CopyToView,
    ::testing::Values(std::tuple{Dims{}, Layout{}}, std::tuple{Dims{5}, Layout{}},
                      std::tuple{Dims{3, 18}, Layout{}},
                      std::tuple{Dims{3, 18}, Layout{Order::kRowMajor, false}},
                      std::tuple{Dims{2, 7, 3, 5}, Layout{}},
                      std::tuple{Dims{2, 7, 3, 5}, Layout{Order::kChannelsLast, true}},
                      std::tuple{Dims{2, 7, 3, 5}, Layout{Order::kChannelsLast, false}}));

TEST(CopyToView, MovesInt64) {
  const HostTensor from = HostTensor::ints({2, 2}, {1, -2, 3, int64_t{1} << 60});
  std::vector<int64_t> memory(static_cast<size_t>(span_of({2, 2}, {})));
  const TensorView view{DataType::kInt64, {2, 2}, strides_of({2, 2}, {}), memory.data()};
  copy_to_view(from, view);
  HostTensor to;
  copy_from_view(view, to);
  EXPECT_EQ(to.bytes, from.bytes);
  EXPECT_EQ(to.type, DataType::kInt64);
}

}  // namespace
}  // namespace tandem
