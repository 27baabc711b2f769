// The commands of `tandem`. Each function adds one to `app`; when the user gives that command, its
// outcome is stored in *outcome (which stays ok otherwise).
#pragma once

#include <CLI/CLI.hpp>

#include "tandem/status.h"

namespace tandem::cli {

void add_devices_command(CLI::App& app, Status* outcome);
void add_run_command(CLI::App& app, Status* outcome);
void add_plan_command(CLI::App& app, Status* outcome);
void add_report_command(CLI::App& app, Status* outcome);
void add_zoo_command(CLI::App& app, Status* outcome);
void add_bench_command(CLI::App& app, Status* outcome);
void add_profile_command(CLI::App& app, Status* outcome);
void add_simulate_command(CLI::App& app, Status* outcome);
void add_train_command(CLI::App& app, Status* outcome);

}  // namespace tandem::cli
