// The register-tiled product, on every instruction set that this processor has.
#include "lane/cpu/loops/tile_gemm.h"

#include "tests/lane/cpu/harness.h"

namespace tandem::cpu {
namespace {

struct Operands {
  static constexpr int kDepth = 37;
  static constexpr int64_t kStride = 45;
  // Weights are fetched ahead of their use, which touches no memory, but panels of real operators
  // are followed by others.
  HostTensor a = random_floats({kMaxTileRows, kStride}, 1);
  HostTensor b = random_floats({kMaxTilePanels, kDepth, kPanel}, 2);
  HostTensor bias = random_floats({kMaxTilePanels * kPanel}, 3);
  HostTensor residual = random_floats({kMaxTileRows, 100}, 4);
};

double product(const Operands& o, int row, int column) {
  double sum = 0;
  for (int k = 0; k < Operands::kDepth; ++k) {
    // The second segment lies before the first one.
    const int k_in_row = k < 20 ? k + 18 : k - 20;
    sum += static_cast<double>(o.a.data<float>()[row * Operands::kStride + k_in_row]) *
           o.b.data<float>()[(column / kPanel * Operands::kDepth + k) * kPanel + column % kPanel];
  }
  return sum;
}

TEST(TileGemm, EveryShapeAndEpilogue) {
  Operands o;
  const float infinity = std::numeric_limits<float>::infinity();
  for (const TileGemm& gemm : tile_gemms()) {
    for (int rows = 1; rows <= gemm.max_rows; ++rows) {
      for (int panels = 1; rows <= gemm.rows_of(panels); ++panels) {
        for (const bool last : {false, true}) {
          const int columns = panels * kPanel - (last ? 5 : 0);
          // Rows in any order and at any distance.
          std::vector<int64_t> c_rows, residual_rows;
          for (int m = 0; m < rows; ++m) {
            c_rows.push_back((rows - 1 - m) * 70);
            residual_rows.push_back(m * 100);
          }
          std::vector<float> c(kMaxTileRows * 70, 0.25f);
          Tile t;
          const Segment segments[] = {{18, 20}, {0, 17}};
          t.segments = segments;
          t.segment_count = 2;
          t.a = o.a.data<float>();
          t.a_stride = Operands::kStride;
          t.last_columns = last ? kPanel - 5 : kPanel;
          t.b = o.b.data<float>();
          t.panel_stride = Operands::kDepth * kPanel;
          t.c = c.data();
          t.c_rows = c_rows.data();
          t.bias = last ? nullptr : o.bias.data<float>();
          t.residual = last ? o.residual.data<float>() : nullptr;
          t.residual_rows = residual_rows.data();
          t.low = last ? 0.0f : -infinity;
          t.high = last ? 1.0f : infinity;
          gemm.run(t, rows, panels);
          for (int m = 0; m < rows; ++m) {
            for (int n = 0; n < 70; ++n) {
              const float got = c[c_rows[m] + n];
              if (n >= columns) {
                ASSERT_EQ(got, 0.25f) << "beyond the tile";
                continue;
              }
              double want = product(o, m, n);
              want += last ? 0.25 + o.residual.data<float>()[m * 100 + n] : o.bias.data<float>()[n];
              if (last) want = std::clamp(want, 0.0, 1.0);
              ASSERT_NEAR(got, want, 1e-5)
                  << gemm.max_rows << " rows at most, tile " << rows << "x" << panels;
            }
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace tandem::cpu
