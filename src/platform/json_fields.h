// Reads the fields of a JSON document, and names those that are wrong.
#pragma once

#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

namespace tandem {

// An object of a platform file, and its place in it for errors, which are thrown as
// std::invalid_argument. Fields that nobody has asked for when done() is called are refused: they
// would be mistakes. The document must outlive this.
class Fields {
 public:
  // `path`: of the object in its document; empty: the document itself.
  Fields(const nlohmann::json& object, std::string path);

  std::string path_of(const std::string& key) const;
  bool has(const std::string& key) const { return object_.contains(key); }
  const nlohmann::json& at(const std::string& key);
  Fields object(const std::string& key) { return Fields(at(key), path_of(key)); }
  const nlohmann::json& array(const std::string& key);  // not empty
  std::string text(const std::string& key);

  // A figure's value: {"value": ..., "source": ...}, and if it is an estimate, "estimate" and why.
  const nlohmann::json& figure(const std::string& key);
  double number(const std::string& key, double least = 0);
  double positive(const std::string& key);
  int count(const std::string& key);  // at least 1
  // Ascending clocks, scaled so that the last one is `highest`.
  std::vector<double> steps(const std::string& key, double highest);

  void done() const;

 private:
  const nlohmann::json& object_;
  std::string path_;
  std::set<std::string> known_;
};

}  // namespace tandem
