#include "runtime/plan_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "profile/signature.h"
#include "support/digest.h"
#include "support/read_file.h"
#include "support/write_file.h"

namespace tandem {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kVersion = 1;

// Reads the members of an object. The first that is missing or of another type is remembered.
class Fields {
 public:
  // `where`: "lanes[0].slices[3]", or empty.
  Fields(const Json& object, std::string where, std::optional<std::string>* problem)
      : object_(object), where_(std::move(where)), problem_(problem) {
    if (!object.is_object()) complain(where_.empty() ? "the file" : where_, "is no object");
  }

  template <typename T>
  T get(const char* name) {
    const Json* value = find(name);
    if (!value) return complain(path(name), "is missing"), T{};
    return convert<T>(name, *value);
  }
  template <typename T>
  T get_or(const char* name, T otherwise) {
    const Json* value = find(name);
    return value ? convert<T>(name, *value) : otherwise;
  }
  // Members of other names would be mistakes without effect.
  void allow_only(std::initializer_list<std::string_view> names) {
    if (!object_.is_object()) return;
    for (const auto& [name, value] : object_.items()) {
      if (std::find(names.begin(), names.end(), name) == names.end()) {
        complain(path(name), "is nothing that plans have there");
      }
    }
  }
  std::string path(const std::string& name) const {
    return where_.empty() ? name : fmt::format("{}.{}", where_, name);
  }
  // An array or object; null if it is none.
  const Json& at(const char* name) {
    static const Json kNothing;
    const Json* value = find(name);
    if (value) return *value;
    complain(path(name), "is missing");
    return kNothing;
  }

 private:
  const Json* find(const char* name) const {
    if (!object_.is_object()) return nullptr;
    const auto found = object_.find(name);
    return found == object_.end() ? nullptr : &*found;
  }
  template <typename T>
  T convert(const char* name, const Json& value) {
    bool fits = false;
    if constexpr (std::is_same_v<T, std::string>) {
      fits = value.is_string();
    } else if constexpr (std::is_floating_point_v<T>) {
      fits = value.is_number() && std::isfinite(value.get<double>()) && value.get<double>() >= 0;
    } else {
      fits = value.is_number_integer() && value.get<int64_t>() >= -1 &&
             value.get<int64_t>() <= std::numeric_limits<T>::max();
    }
    if (fits) return value.get<T>();
    return complain(path(name), fmt::format("cannot be {}", value.dump())), T{};
  }
  void complain(const std::string& what, const std::string& how) {
    if (!*problem_) *problem_ = fmt::format("{} {}", what, how);
  }

  const Json& object_;
  std::string where_;
  std::optional<std::string>* problem_;
};

std::string text_of(const Graph& graph, TensorId id) {
  const Tensor& tensor = graph.tensor(id);
  return fmt::format("{} {} {}", tensor.name, to_string(tensor.type), to_string(tensor.dims));
}

// --- writing ---

Json slice_json(const Graph& graph, const ScheduledSlice& scheduled, const Span* predicted) {
  const Slice& slice = scheduled.slice;
  Json json = {{"operator", graph.op(slice.op).name}};
  if (!slice.whole()) {
    json["axis"] = slice.axis;
    json["begin"] = slice.begin;
    json["end"] = slice.end;
  }
  if (scheduled.threads > 0) json["threads"] = scheduled.threads;
  if (scheduled.predicted_us > 0) json["predicted_us"] = scheduled.predicted_us;
  if (predicted) json["start_us"] = predicted->begin_us;
  constexpr double kSame = 1e-6;
  if (predicted && std::abs(predicted->us() - scheduled.predicted_us) > kSame) {
    json["end_us"] = predicted->end_us;
  }
  return json;
}

// By slice of a lane; null where nothing is predicted.
std::vector<const Span*> predicted_slices(const Plan& plan, size_t lane) {
  std::vector<const Span*> slices(plan.schedule.lanes[lane].size(), nullptr);
  if (plan.prediction.lanes.empty()) return slices;
  for (const Span& span : plan.prediction.lanes[lane]) {
    if (span.kind == SpanKind::kSlice) slices[span.slice] = &span;
  }
  return slices;
}

// --- reading ---

PlanOrigin read_origin(Fields& file, std::optional<std::string>* problem) {
  PlanOrigin origin;
  origin.engine = file.get<std::string>("engine");
  Fields model(file.at("model"), "model", problem);
  origin.model = model.get<std::string>("name");
  origin.model_digest = model.get<std::string>("digest");
  origin.platform = file.get<std::string>("platform");
  origin.costs = file.get<std::string>("costs");
  model.allow_only({"name", "digest"});
  const Json& lanes = file.at("lanes");
  for (size_t lane = 0; lane < lanes.size() && lanes.is_array(); ++lane) {
    Fields fields(lanes[lane], fmt::format("lanes[{}]", lane), problem);
    origin.lanes.push_back(fields.get<std::string>("lane"));
    fields.allow_only({"lane", "slices"});
  }
  return origin;
}

Status check_origin(const PlanOrigin& plan, const PlanOrigin& here, const std::string& label) {
  std::vector<std::string> differences;
  const auto compare = [&](const char* what, const std::string& of_plan, const std::string& now) {
    if (of_plan != now) {
      differences.push_back(fmt::format("its {} is {}, and here it is {}", what, of_plan, now));
    }
  };
  compare("engine", plan.engine, here.engine);
  if (plan.model_digest != here.model_digest) {
    compare("model", fmt::format("{} ({})", plan.model, plan.model_digest),
            fmt::format("{} ({})", here.model, here.model_digest));
  }
  compare("lanes", fmt::format("{}", fmt::join(plan.lanes, ", ")),
          fmt::format("{}", fmt::join(here.lanes, ", ")));
  compare("platform", plan.platform, here.platform);
  // A plan that was made without looking at costs stays good.
  if (plan.costs != "none") compare("source of costs", plan.costs, here.costs);
  if (differences.empty()) return {};
  return failed_precondition(fmt::format(
      "plan {} was made for something else: {}; plan again (--replan does, and rewrites it)", label,
      fmt::join(differences, "; ")));
}

class SliceReader {
 public:
  SliceReader(const Graph& graph, std::optional<std::string>* problem)
      : graph_(graph), problem_(problem) {
    for (size_t op = 0; op < graph.operators().size(); ++op) {
      operators_[graph.operators()[op].name] = static_cast<OperatorId>(op);
    }
  }

  // Appends to the lane, and to its prediction if there is one.
  Status read(const Json& json, const std::string& where, std::vector<ScheduledSlice>* lane,
              std::vector<Span>* prediction) {
    Fields fields(json, where, problem_);
    ScheduledSlice scheduled;
    const auto name = fields.get<std::string>("operator");
    if (*problem_) return {};
    const auto op = operators_.find(name);
    if (op == operators_.end()) {
      return invalid_argument(
          fmt::format("{} is of operator {}, which the model does not have", where, name));
    }
    scheduled.slice.op = op->second;
    scheduled.slice.axis = fields.get_or("axis", kNone);
    if (!scheduled.slice.whole()) {
      scheduled.slice.begin = fields.get<int64_t>("begin");
      scheduled.slice.end = fields.get<int64_t>("end");
      fields.allow_only(
          {"operator", "axis", "begin", "end", "threads", "predicted_us", "start_us", "end_us"});
    } else {
      fields.allow_only({"operator", "threads", "predicted_us", "start_us", "end_us"});
    }
    scheduled.threads = fields.get_or("threads", 0);
    if (scheduled.threads < 0) {
      return invalid_argument(
          fmt::format("{}.threads is {}, and must be at least 0", where, scheduled.threads));
    }
    scheduled.predicted_us = fields.get_or("predicted_us", 0.0);
    if (json.contains("start_us")) {
      const auto begin = fields.get<double>("start_us");
      prediction->push_back({SpanKind::kSlice,
                             static_cast<int>(lane->size()),
                             {},
                             begin,
                             fields.get_or("end_us", begin + scheduled.predicted_us)});
    }
    lane->push_back(std::move(scheduled));
    return {};
  }

 private:
  const Graph& graph_;
  std::optional<std::string>* problem_;
  std::map<std::string, OperatorId> operators_;
};

// The gaps before slices that wait are their waits.
void add_waits(const Schedule& schedule, Timeline* prediction) {
  for (size_t lane = 0; lane < prediction->lanes.size(); ++lane) {
    std::vector<Span> spans;
    double free = 0;
    for (const Span& span : prediction->lanes[lane]) {
      const std::vector<Wait>& waits = schedule.lanes[lane][span.slice].waits;
      if (!waits.empty() && span.begin_us > free) {
        spans.push_back({SpanKind::kWait, span.slice, waits.back(), free, span.begin_us});
      }
      spans.push_back(span);
      free = span.end_us;
    }
    prediction->lanes[lane] = std::move(spans);
  }
}

Status read_lanes(const Graph& graph, const Json& lanes, std::optional<std::string>* problem,
                  Plan* plan) {
  SliceReader reader(graph, problem);
  size_t predicted = 0;
  size_t all = 0;
  for (size_t lane = 0; lane < lanes.size(); ++lane) {
    const std::string where = fmt::format("lanes[{}]", lane);
    const Json& slices = Fields(lanes[lane], where, problem).at("slices");
    if (*problem) return {};
    if (!slices.is_array()) {
      *problem = where + ".slices is no list";
      return {};
    }
    plan->schedule.lanes.emplace_back();
    plan->prediction.lanes.emplace_back();
    for (size_t i = 0; i < slices.size(); ++i) {
      TANDEM_RETURN_IF_ERROR(reader.read(slices[i], fmt::format("{}.slices[{}]", where, i),
                                         &plan->schedule.lanes.back(),
                                         &plan->prediction.lanes.back()));
      if (*problem) return {};
    }
    all += slices.size();
    predicted += plan->prediction.lanes.back().size();
  }
  if (predicted < all) plan->prediction = {};
  return {};
}

}  // namespace

std::string model_digest(const Graph& graph) {
  const Placement placement = analyse(graph);
  std::string text;
  for (const TensorId input : graph.inputs()) text += "input " + text_of(graph, input) + "\n";
  for (size_t id = 0; id < graph.operators().size(); ++id) {
    const Operator& op = graph.operators()[id];
    text +=
        fmt::format("{} {}:", op.name, signature(graph, placement, static_cast<OperatorId>(id)));
    for (const TensorId input : op.inputs) text += " " + graph.tensor(input).name;
    text += fmt::format(" -> {}\n", text_of(graph, op.output));
  }
  for (const TensorId output : graph.outputs()) text += "output " + text_of(graph, output) + "\n";
  return digest(text);
}

std::string to_json(const Graph& graph, const Plan& plan) {
  Json json = {{"tandem_plan", kVersion},
               {"engine", plan.origin.engine},
               {"model", {{"name", plan.origin.model}, {"digest", plan.origin.model_digest}}},
               {"platform", plan.origin.platform},
               {"costs", plan.origin.costs},
               {"strategy", plan.schedule.strategy}};
  if (!plan.prediction.lanes.empty()) json["predicted_us"] = plan.prediction.makespan_us;
  json["lanes"] = Json::array();
  for (size_t lane = 0; lane < plan.schedule.lanes.size(); ++lane) {
    Json slices = Json::array();
    const std::vector<const Span*> predicted = predicted_slices(plan, lane);
    for (size_t i = 0; i < predicted.size(); ++i) {
      slices.push_back(slice_json(graph, plan.schedule.lanes[lane][i], predicted[i]));
    }
    json["lanes"].push_back({{"lane", plan.origin.lanes[lane]}, {"slices", std::move(slices)}});
  }
  return json.dump(1) + "\n";
}

StatusOr<Plan> plan_from_json(const Graph& graph, const PlanOrigin& origin, std::string_view text,
                              const std::string& label) {
  const auto corrupt_plan = [&](const std::string& what) {
    return corrupt(
        fmt::format("{} is not a whole plan: {}; make it anew with 'tandem plan'", label, what));
  };
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded()) return corrupt_plan("it is no JSON, or ends too early");
  std::optional<std::string> problem;
  Fields file(json, "", &problem);
  const int version = file.get<int>("tandem_plan");
  if (problem) return corrupt_plan(*problem);
  if (version != kVersion) {
    return unsupported(fmt::format("plan {} has version {}, and this Tandem reads {}; plan again",
                                   label, version, kVersion));
  }
  Plan plan;
  plan.origin = read_origin(file, &problem);
  plan.schedule.strategy = file.get<std::string>("strategy");
  plan.prediction.makespan_us = file.get_or("predicted_us", 0.0);
  file.allow_only(
      {"tandem_plan", "engine", "model", "platform", "costs", "strategy", "predicted_us", "lanes"});
  if (!problem && !json["lanes"].is_array()) problem = "lanes is no list";
  if (problem) return corrupt_plan(*problem);
  TANDEM_RETURN_IF_ERROR(check_origin(plan.origin, origin, label));
  const Status lanes = read_lanes(graph, json["lanes"], &problem, &plan);
  if (problem) return corrupt_plan(*problem);
  TANDEM_RETURN_IF_ERROR(lanes.with_context("plan " + label));
  TANDEM_RETURN_IF_ERROR(derive_waits(graph, &plan.schedule).with_context("plan " + label));
  TANDEM_RETURN_IF_ERROR(check_schedule(graph, plan.schedule).with_context("plan " + label));
  add_waits(plan.schedule, &plan.prediction);
  return plan;
}

Status save_plan(const std::string& path, const Graph& graph, const Plan& plan) {
  return write_file(path, to_json(graph, plan));
}

StatusOr<Plan> load_plan(const std::string& path, const Graph& graph, const PlanOrigin& origin) {
  const StatusOr<std::string> text = read_file(path);
  if (!text.ok()) {
    return Status(
        text.status().code(),
        fmt::format("there is no plan to be read; make it with 'tandem plan MODEL -o {}': "
                    "{}",
                    path, text.status().message()));
  }
  return plan_from_json(graph, origin, *text, path);
}

}  // namespace tandem
