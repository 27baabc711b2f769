#include "predict/slice_case.h"

#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>
#include <type_traits>

#include "support/json_error.h"

namespace tandem::predict {
namespace {

using nlohmann::json;

constexpr std::array<const char*, kSliceFamilies> kFamilyNames = {
    "conv_1x1", "conv_3x3", "conv_other",  "conv_grouped", "depthwise",  "conv_transpose", "linear",
    "matmul",   "pool",     "elementwise", "softmax",      "layer_norm", "reduce",         "copy"};
constexpr std::array<const char*, 5> kAxisNames = {"whole", "batch", "height", "width", "channels"};
constexpr std::array<const char*, 3> kLoadNames = {"none", "memory", "compute"};

template <size_t N>
StatusOr<size_t> index_of(const std::array<const char*, N>& names, std::string_view name,
                          const char* what) {
  for (size_t i = 0; i < N; ++i) {
    if (names[i] == name) return i;
  }
  return invalid_argument(
      fmt::format("there is no {} '{}'; there are {}", what, name, fmt::join(names, ", ")));
}

// Calls f(name, field) for every field of a SliceCase, const or not.
template <typename Lane, typename F>
void visit_lane(Lane& lane, const F& f) {
  f("lane", lane.name);
  f("lane_kind", lane.kind);
  f("vendor", lane.vendor);
  f("cores", lane.cores);
  f("max_threads", lane.max_threads);
  f("compute_units", lane.compute_units);
  f("simd_floats", lane.simd_floats);
  f("l1_bytes", lane.l1_bytes);
  f("l2_bytes", lane.l2_bytes);
  f("l3_bytes", lane.l3_bytes);
  f("local_bytes", lane.local_bytes);
  f("max_work_group", lane.max_work_group);
}

template <typename Case, typename F>
void visit_operator(Case& c, const F& f) {
  f("family", c.family);
  f("kind", c.kind);
  f("variant", c.variant);
  f("activation", c.activation);
  f("has_bias", c.has_bias);
  f("has_residual", c.has_residual);
  f("batch", c.batch);
  f("height", c.height);
  f("width", c.width);
  f("channels", c.channels);
  f("in_height", c.in_height);
  f("in_width", c.in_width);
  f("in_channels", c.in_channels);
  f("kernel_height", c.kernel_height);
  f("kernel_width", c.kernel_width);
  f("stride_height", c.stride_height);
  f("stride_width", c.stride_width);
  f("dilation_height", c.dilation_height);
  f("dilation_width", c.dilation_width);
  f("pad_top", c.pad_top);
  f("pad_left", c.pad_left);
  f("groups", c.groups);
  f("operands", c.operands);
  f("reduced", c.reduced);
  f("reduced_step", c.reduced_step);
}

template <typename Case, typename F>
void visit(Case& c, const F& f) {
  visit_operator(c, f);
  f("axis", c.axis);
  f("cut_begin", c.cut_begin);
  f("cut_end", c.cut_end);
  f("cut_extent", c.cut_extent);
  f("flops", c.flops);
  f("in_bytes", c.in_bytes);
  f("weight_bytes", c.weight_bytes);
  f("out_bytes", c.out_bytes);
  f("out_pitch", c.out_pitch);
  f("in_pitch", c.in_pitch);
  f("out_run", c.out_run);
  f("in_run", c.in_run);
  f("in_channel_step", c.in_channel_step);
  f("implementation", c.implementation);
  f("library_variant", c.library_variant);
  f("global_x", c.global_size[0]);
  f("global_y", c.global_size[1]);
  f("global_z", c.global_size[2]);
  f("local_x", c.local_size[0]);
  f("local_y", c.local_size[1]);
  f("local_z", c.local_size[2]);
  f("work_groups", c.work_groups);
  f("threads", c.threads);
  f("dispatches", c.dispatches);
  f("computed_flops", c.computed_flops);
  f("repeated", c.repeated);
  f("load", c.load);
  visit_lane(c.lane, f);
}

// Enumerations travel as their names, everything else as it is.
template <typename Field>
json value_of(const Field& field) {
  if constexpr (std::is_enum_v<Field>) {
    return to_string(field);
  } else {
    return field;
  }
}

void read(const json& value, SliceFamily& field) {
  const StatusOr<SliceFamily> family = parse_slice_family(value.get<std::string>());
  if (!family.ok()) throw std::invalid_argument(family.status().message());
  field = *family;
}

template <size_t N, typename Enum>
void read_name(const std::array<const char*, N>& names, const json& value, Enum& field,
               const char* what) {
  const StatusOr<size_t> index = index_of(names, value.get<std::string>(), what);
  if (!index.ok()) throw std::invalid_argument(index.status().message());
  field = static_cast<Enum>(*index);
}
void read(const json& value, CutAxis& field) { read_name(kAxisNames, value, field, "axis"); }
void read(const json& value, OtherLoad& field) { read_name(kLoadNames, value, field, "load"); }

template <typename Field>
void read(const json& value, Field& field) {
  value.get_to(field);
}

// What the arithmetic of SliceCase and of features relies on.
void check(const SliceCase& c) {
  for (const int64_t extent :
       {c.batch, c.height, c.width, c.channels, c.in_height, c.in_width, c.in_channels,
        c.kernel_height, c.kernel_width, c.stride_height, c.stride_width, c.dilation_height,
        c.dilation_width, c.groups, c.reduced, c.threads, c.lane.max_threads}) {
    if (extent < 1) throw std::invalid_argument("an extent or a count is less than one");
  }
  const bool cut = c.axis != CutAxis::kWhole;
  if (cut && (c.cut_begin < 0 || c.cut_begin >= c.cut_end || c.cut_end > c.cut_extent)) {
    throw std::invalid_argument("its part is not one of the operator's");
  }
}

}  // namespace

const char* to_string(SliceFamily family) { return kFamilyNames[static_cast<size_t>(family)]; }
const char* to_string(CutAxis axis) { return kAxisNames[static_cast<size_t>(axis)]; }
const char* to_string(OtherLoad load) { return kLoadNames[static_cast<size_t>(load)]; }

StatusOr<SliceFamily> parse_slice_family(std::string_view name) {
  TANDEM_ASSIGN_OR_RETURN(const size_t index, index_of(kFamilyNames, name, "operator family"));
  return static_cast<SliceFamily>(index);
}

std::string to_json(const SliceCase& slice) {
  json document = {{"version", kSliceCaseVersion}};
  visit(slice, [&](const char* name, const auto& field) { document[name] = value_of(field); });
  return document.dump();
}

StatusOr<SliceCase> parse_slice_case(const std::string& text) {
  try {
    const json document = json::parse(text);
    const int version = document.at("version");
    if (version != kSliceCaseVersion) {
      return failed_precondition(fmt::format(
          "a measurement's description has version {}, and this Tandem reads {}: profile again",
          version, kSliceCaseVersion));
    }
    SliceCase slice;
    visit(slice, [&](const char* name, auto& field) { read(document.at(name), field); });
    check(slice);
    return slice;
  } catch (const std::exception& e) {
    return corrupt(
        fmt::format("a measurement's description is damaged: {}", json_problem(e.what())));
  }
}

std::string to_json(const LaneFacts& lane) {
  json document = json::object();
  visit_lane(lane, [&](const char* name, const auto& field) { document[name] = field; });
  return document.dump();
}

StatusOr<LaneFacts> parse_lane_facts(const std::string& text) {
  try {
    const json document = json::parse(text);
    LaneFacts lane;
    visit_lane(lane, [&](const char* name, auto& field) { document.at(name).get_to(field); });
    return lane;
  } catch (const std::exception& e) {
    return corrupt(fmt::format("what is known of a lane is damaged: {}", json_problem(e.what())));
  }
}

const std::vector<std::string>& slice_case_columns() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    const SliceCase empty;
    visit(empty, [&](const char* name, const auto&) { all.emplace_back(name); });
    return all;
  }();
  return names;
}

std::vector<std::string> slice_case_values(const SliceCase& slice) {
  std::vector<std::string> values;
  visit(slice, [&](const char*, const auto& field) {
    const json value = value_of(field);
    values.push_back(value.is_string() ? value.get<std::string>() : value.dump());
  });
  return values;
}

std::string shape_key(const SliceCase& slice) {
  std::string key;
  visit_operator(slice, [&](const char*, const auto& field) {
    const json value = value_of(field);
    if (!key.empty()) key += ' ';
    key += value.is_string() ? value.get<std::string>() : value.dump();
  });
  return key;
}

}  // namespace tandem::predict
