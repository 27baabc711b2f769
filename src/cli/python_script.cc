#include "cli/python_script.h"

#include "fmt/format.h"

namespace tandem::cli {

namespace fs = std::filesystem;

StatusOr<PythonScript> find_python_script(std::string_view name, const std::string& python,
                                          std::string_view package, std::string_view flag) {
  std::error_code error;
  const fs::path binary = fs::read_symlink("/proc/self/exe", error);
  for (fs::path folder = binary.parent_path(); folder.has_relative_path();
       folder = folder.parent_path()) {
    for (const char* place : {"tools", "share/tandem"}) {
      const fs::path path = folder / place / name;
      if (!fs::exists(path, error)) continue;
      if (!python.empty()) return PythonScript{path, python};
      const fs::path found = folder / ".venv/bin/python";
      if (fs::exists(found, error)) return PythonScript{path, found};
      return not_found(fmt::format("there is no {}; give a Python that has the package {} with {}",
                                   found.string(), package, flag));
    }
  }
  return not_found(fmt::format("there is no {} in a folder tools or share/tandem above {}", name,
                               binary.string()));
}

}  // namespace tandem::cli
