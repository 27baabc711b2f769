// Python scripts that commands start: in a build's source tree, or where they were installed to.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "tandem/status.h"

namespace tandem::cli {

struct PythonScript {
  std::filesystem::path path;
  std::filesystem::path python;  // what to run it with
};

// `name` in a folder tools or share/tandem above this program. `python`: an interpreter that the
// user named; empty: of the .venv beside the script's folder. Errors say that it needs `package`
// and that it is given with `flag`.
StatusOr<PythonScript> find_python_script(std::string_view name, const std::string& python,
                                          std::string_view package, std::string_view flag);

}  // namespace tandem::cli
