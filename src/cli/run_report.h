// What `tandem run` prints and writes as JSON.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cli/contest.h"
#include "cli/verify.h"
#include "report/drift.h"
#include "support/statistics.h"
#include "tandem/session.h"

namespace tandem::cli {

nlohmann::json summary_json(const Summary& summary);

nlohmann::json contender_json(const Contender& contender, const Model& model,
                              const std::vector<std::string>& lane_names,
                              const std::optional<Limit>& limit);
void print_contender(const Contender& contender, const Model& model,
                     const std::vector<std::string>& lane_names, const std::optional<Limit>& limit);

nlohmann::json verification_json(const Verification& verification);
Status divergence_error(const std::string& strategy, const Divergence& first);

std::string specs_text(const std::vector<TensorSpec>& specs);

nlohmann::json drift_json(const std::vector<LaneDrift>& lanes,
                          const std::vector<std::string>& lane_names);

nlohmann::json adaptation_json(const Adaptation& adaptation,
                               const std::vector<std::string>& lane_names);
std::string adaptation_text(const Adaptation& adaptation,
                            const std::vector<std::string>& lane_names);

}  // namespace tandem::cli
