#include "cli/paper_throttling.h"

#include <span>
#include <utility>
#include <vector>

#include "support/log.h"
#include "support/statistics.h"

namespace tandem::cli {
namespace {

using nlohmann::json;

constexpr int kCoolRuns = 20;
constexpr int kRuns = 80;
constexpr int kLastRuns = 20;
constexpr double kClock = 0.5;

// Sessions tell of every plan that they change.
class Hush {
 public:
  Hush() : before_(log().level()) { log().set_level(spdlog::level::warn); }
  ~Hush() { log().set_level(before_); }
  Hush(const Hush&) = delete;
  Hush& operator=(const Hush&) = delete;

 private:
  const spdlog::level::level_enum before_;
};

struct Outcome {
  std::vector<double> ms;  // by run
  Adaptation adaptation;
};

StatusOr<Outcome> run(const Model& model, const LearnedPlatform& platform,
                      const sim::Clocks& clocks, bool adapt) {
  const std::shared_ptr<SimulatedPlatform> lanes = platform.lanes();
  lanes->world().throttle_after(kCoolRuns, clocks);
  SessionOptions options = platform.session_options();
  options.adapt = adapt;
  TANDEM_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session,
                          Session::create(model, lanes, options));
  std::vector<HostTensor> inputs;
  for (const TensorSpec& input : model.inputs()) inputs.emplace_back(input.type, input.dims);
  std::vector<HostTensor> outputs;
  Outcome outcome;
  for (int i = 0; i < kRuns; ++i) {
    TANDEM_RETURN_IF_ERROR(session->run(inputs, &outputs));
    outcome.ms.push_back(session->last_run_us() / 1000);
  }
  outcome.adaptation = session->adaptation();
  return outcome;
}

double median(const std::vector<double>& values, size_t begin, size_t end) {
  return summarize({values.begin() + static_cast<std::ptrdiff_t>(begin),
                    values.begin() + static_cast<std::ptrdiff_t>(end)})
      .median;
}

}  // namespace

StatusOr<json> study_throttling(const Model& model, const LearnedPlatform& platform) {
  const std::pair<const char*, sim::Clocks> cases[] = {{"CPU", {.cpu = kClock, .gpu = 1}},
                                                       {"GPU", {.cpu = 1, .gpu = kClock}}};
  json rows = json::array();
  const Hush hush;
  for (const auto& [what, clocks] : cases) {
    TANDEM_ASSIGN_OR_RETURN(const Outcome fixed, run(model, platform, clocks, false));
    TANDEM_ASSIGN_OR_RETURN(const Outcome adapting, run(model, platform, clocks, true));
    rows.push_back({{"network", model.name()},
                    {"platform", platform.model().name},
                    {"throttled", what},
                    {"clock", kClock},
                    {"before_ms", median(fixed.ms, 0, kCoolRuns)},
                    {"throttled_ms", median(fixed.ms, kRuns - kLastRuns, kRuns)},
                    {"adapted_ms", median(adapting.ms, kRuns - kLastRuns, kRuns)},
                    {"planned", adapting.adaptation.planned},
                    {"changed", adapting.adaptation.changed}});
  }
  return rows;
}

}  // namespace tandem::cli
