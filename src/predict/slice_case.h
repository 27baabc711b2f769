// One slice on one lane in plain numbers and names: all that predictors of this engine's own lanes
// may know. Measurements are stored with it in full, so that training needs neither the graph nor
// the lane that they came from.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tandem/status.h"

namespace tandem::predict {

// Operators whose times follow the same laws: each family has predictors of its own.
enum class SliceFamily : uint8_t {
  kConv1x1,
  kConv3x3,
  kConvOther,
  kConvGrouped,
  kDepthwise,
  kConvTranspose,
  kLinear,
  kMatMul,
  kPool,
  kElementwise,  // unary and binary
  kSoftmax,
  kLayerNorm,
  kReduce,
  kCopy,  // whatever moves elements: copy, reshape, concat, pad, gather, resize
};
inline constexpr int kSliceFamilies = 14;
const char* to_string(SliceFamily family);
StatusOr<SliceFamily> parse_slice_family(std::string_view name);

// What a lane computes on. Zero: not known, or there is none.
struct LaneFacts {
  std::string name = {};    // "cpu", "gpu"
  std::string kind = {};    // "cpu", "opencl", "simulated"
  std::string vendor = {};  // of an OpenCL device, as it says itself; or the host's processor model
  int64_t cores = 0;        // of the host, that the lane computes on
  int64_t max_threads = 1;
  int64_t compute_units = 0;   // of an OpenCL device that the lane uses; CPU lanes: cores
  int64_t simd_floats = 0;     // in a vector register of the host's cores
  int64_t l1_bytes = 0;        // data cache that one core has
  int64_t l2_bytes = 0;        // that one core reaches
  int64_t l3_bytes = 0;        // that one core reaches, whoever else does
  int64_t local_bytes = 0;     // of OpenCL local memory that a work-group may have
  int64_t max_work_group = 0;  // work-items

  bool operator==(const LaneFacts&) const = default;
};

// Along which of SliceCase's extents the output is cut.
enum class CutAxis : uint8_t { kWhole, kBatch, kHeight, kWidth, kChannels };
const char* to_string(CutAxis axis);

// What other lanes do meanwhile.
enum class OtherLoad : uint8_t { kNone, kMemory, kCompute };
const char* to_string(OtherLoad load);

// Extents are those of the whole operator, in elements. Tensors of any rank are seen as images:
// channels are the last dimension (of channels-last images, dimension 1), height is the one before
// (rows, tokens), batch the product of the others; width is 1 except in images.
struct SliceCase {
  // --- The operator.
  SliceFamily family = SliceFamily::kCopy;
  std::string kind;     // as the graph calls it: "conv", "linear", ...
  std::string variant;  // of pool, reduce, unary, binary and resize: "max", "add"; of matmul: which
                        // operands are transposed: "nt"
  std::string activation;  // fused; "identity": none
  bool has_bias = false;
  bool has_residual = false;
  int64_t batch = 1;     // of the output
  int64_t height = 1;    // of the output; linear and matmul: rows
  int64_t width = 1;     // of the output
  int64_t channels = 1;  // of the output
  int64_t in_height = 1;
  int64_t in_width = 1;
  int64_t in_channels = 1;  // linear and matmul: the length of sums
  int64_t kernel_height = 1;
  int64_t kernel_width = 1;
  int64_t stride_height = 1;
  int64_t stride_width = 1;
  int64_t dilation_height = 1;
  int64_t dilation_width = 1;
  int64_t pad_top = 0;
  int64_t pad_left = 0;
  int64_t groups = 1;
  int64_t operands = 1;      // tensors read that are not packed: of a concat, all of its inputs
  int64_t reduced = 1;       // of reduce and softmax: elements that make one result, or one sum
  int64_t reduced_step = 1;  // elements of the input from one of those to the next

  // --- The part of its output.
  CutAxis axis = CutAxis::kWhole;
  int64_t cut_begin = 0;   // in elements of the axis that is cut
  int64_t cut_end = 0;     // 0: whole
  int64_t cut_extent = 0;  // of the axis; of kBatch, one of the dimensions that make up the batch

  // --- Work of the part.
  double flops = 0;  // a multiply-add is two; without padding of tiles
  double in_bytes = 0;
  double weight_bytes = 0;  // constants that the lane packs
  double out_bytes = 0;

  // --- Memory.
  int64_t out_pitch = 0;        // elements from one pixel or row of the output to the next
  int64_t in_pitch = 0;         // the same of the first input
  int64_t out_run = 0;          // elements of the part that lie in one piece in memory
  int64_t in_run = 0;           // of the first input's, in one piece
  int64_t in_channel_step = 1;  // copies: elements of the input from one channel of the output to
                                // the next: not 1 if they transpose; 0: it is the same one

  // --- What the lane says that it will do: ImplementationInfo of lane/lane.h.
  std::string implementation;
  std::string library_variant;
  int64_t global_size[3] = {0, 0, 0};
  int64_t local_size[3] = {0, 0, 0};
  int64_t work_groups = 0;
  int64_t threads = 1;
  int64_t dispatches = 1;
  double computed_flops = 0;

  // --- Conditions.
  bool repeated = false;  // the same slice ran just before: its data are in caches
  OtherLoad load = OtherLoad::kNone;

  LaneFacts lane;

  // Extents of the part.
  int64_t part_batch() const { return part_of(CutAxis::kBatch, batch); }
  int64_t part_height() const { return part_of(CutAxis::kHeight, height); }
  int64_t part_width() const { return part_of(CutAxis::kWidth, width); }
  int64_t part_channels() const { return part_of(CutAxis::kChannels, channels); }
  double bytes() const { return in_bytes + weight_bytes + out_bytes; }

  bool operator==(const SliceCase&) const = default;

 private:
  int64_t part_of(CutAxis cut, int64_t extent) const {
    return axis == cut ? extent * (cut_end - cut_begin) / cut_extent : extent;
  }
};

// The version of what follows: raised whenever the meaning of a field changes.
inline constexpr int kSliceCaseVersion = 1;

// One line of JSON, and back. kFailedPrecondition for another version, kCorrupt for what
// to_json() cannot have made.
std::string to_json(const SliceCase& slice);
StatusOr<SliceCase> parse_slice_case(const std::string& text);

std::string to_json(const LaneFacts& lane);
StatusOr<LaneFacts> parse_lane_facts(const std::string& text);

// The same for people who like tables: names of columns, and their values as text, in that order.
const std::vector<std::string>& slice_case_columns();
std::vector<std::string> slice_case_values(const SliceCase& slice);

// The operator without the part, lane, memory and conditions, as text: slices of equal operators
// have equal keys.
std::string shape_key(const SliceCase& slice);

}  // namespace tandem::predict
