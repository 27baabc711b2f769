# Writes OUTPUT: a C++ file with a digest of the texts of SOURCES, as engine_digest() of
# src/platform/engine.cc returns it. Where the files lie does not matter.
set(digests "")
list(SORT SOURCES)
foreach(file IN LISTS SOURCES)
  file(SHA256 ${file} digest)
  string(APPEND digests "${digest}\n")
endforeach()
string(SHA256 digest "${digests}")
string(SUBSTRING ${digest} 0 16 digest)
file(WRITE ${OUTPUT} "// Generated from src/lane by cmake/DigestSources.cmake.\n"
  "namespace tandem {\n\nconst char* engine_digest() { return \"${digest}\"; }\n\n}  // namespace tandem\n")
