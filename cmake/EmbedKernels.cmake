# Writes OUTPUT: a C++ file with the text of every file of KERNELS, as embedded_kernels() of
# src/lane/opencl/embedded_kernels.h returns it. Raw string literals have a length limit in some
# compilers, so that the text goes in as bytes.
set(body "")
set(table "")
list(SORT KERNELS)
foreach(file IN LISTS KERNELS)
  get_filename_component(name ${file} NAME)
  string(MAKE_C_IDENTIFIER ${name} id)
  file(READ ${file} hex HEX)
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "'\\\\x\\1'," bytes "${hex}")
  string(APPEND body "constexpr char ${id}[] = {${bytes}'\\0'};\n")
  string(APPEND table "    {\"${name}\", {${id}, sizeof(${id}) - 1}},\n")
endforeach()
file(WRITE ${OUTPUT} "// Generated from src/lane/opencl/kernels by cmake/EmbedKernels.cmake.\n"
  "#include \"lane/opencl/embedded_kernels.h\"\n\nnamespace tandem {\nnamespace {\n${body}}  // namespace\n\n"
  "const std::map<std::string, std::string_view>& embedded_kernels() {\n"
  "  static const std::map<std::string, std::string_view> kernels = {\n${table}  };\n"
  "  return kernels;\n}\n\n}  // namespace tandem\n")
