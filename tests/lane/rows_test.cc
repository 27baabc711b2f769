#include "lane/rows.h"

#include <gtest/gtest.h>

#include <set>

#include "tests/support/random.h"

namespace tandem {
namespace {

using testing::Random;

std::set<int64_t> bytes_in(const std::vector<Rows>& all) {
  std::set<int64_t> bytes;
  for (const Rows& rows : all) {
    for (int64_t row = 0; row < rows.count; ++row) {
      for (int64_t i = 0; i < rows.bytes; ++i) {
        EXPECT_TRUE(bytes.insert(rows.offset + row * rows.pitch + i).second) << "twice";
      }
    }
  }
  return bytes;
}

TEST(Rows, ChannelsOfAnImageAreOneRectangle) {
  const TensorView view{DataType::kFloat32, {1, 40, 6, 5}, {1440, 1, 240, 48}, nullptr};
  const std::vector<Rows> expected = {{64, 64, 30, 192}};
  EXPECT_EQ(rows_of(view, {{0, 1}, {16, 32}, {0, 6}, {0, 5}}), expected);
}

TEST(Rows, LinesOfADenseImageAreOneRun) {
  const TensorView view{DataType::kFloat32, {1, 48, 6, 5}, {1440, 1, 240, 48}, nullptr};
  const std::vector<Rows> expected = {{2 * 960, 3 * 960, 1, 3 * 960}};
  EXPECT_EQ(rows_of(view, {{0, 1}, {0, 48}, {2, 5}, {0, 5}}), expected);
}

TEST(RowsProperty, CoverEveryElementOnceAndNothingElse) {
  Random random(11);
  for (int trial = 0; trial < 200; ++trial) {
    TensorView view;
    Region region;
    const auto rank = random.integer(0, 4);
    std::vector<size_t> order;
    for (int64_t d = 0; d < rank; ++d) {
      view.dims.push_back(random.integer(1, 5));
      const int64_t begin = random.integer(0, view.dims.back());
      region.push_back({begin, random.integer(begin, view.dims.back())});
      order.insert(order.begin() + random.integer(0, d), static_cast<size_t>(d));
    }
    view.strides.resize(view.dims.size());
    int64_t stride = 1;
    for (const size_t d : order) {
      view.strides[d] = stride;
      stride *= view.dims[d] + (random.coin() ? random.integer(0, 2) : 0);
    }
    std::set<int64_t> expected;
    std::vector<int64_t> offsets{0};
    for (size_t d = 0; d < region.size(); ++d) {
      std::vector<int64_t> next;
      for (const int64_t offset : offsets) {
        for (int64_t i = region[d].begin; i < region[d].end; ++i) {
          next.push_back(offset + i * view.strides[d]);
        }
      }
      offsets = next;
    }
    for (const int64_t offset : offsets) {
      for (int64_t byte = 0; byte < 4; ++byte) {
        expected.insert(4 * offset + byte);
        EXPECT_LT(4 * offset + byte, span_in_bytes(view));
      }
    }
    EXPECT_EQ(bytes_in(rows_of(view, region)), expected);
  }
}

}  // namespace
}  // namespace tandem
