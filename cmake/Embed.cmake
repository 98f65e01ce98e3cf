# troupe_embed(OUTPUT file.cpp OPENAPI document DASHBOARD folder): writes a source that holds these files' bytes (service/assets/embedded.hpp).
# The assembler reads the files, so that large ones cost the compiler nothing. A folder that is not there gives an empty list.
function(troupe_embed)
  cmake_parse_arguments(E "" "OUTPUT;OPENAPI;DASHBOARD" "" ${ARGN})
  file(GLOB_RECURSE files CONFIGURE_DEPENDS ${E_DASHBOARD}/*)
  list(SORT files)
  if(NOT ${E_DASHBOARD}/index.html IN_LIST files)
    set(files "")
  endif()
  set(symbols "")
  set(rows "")
  set(number 0)
  foreach(file IN LISTS E_OPENAPI files)
    string(APPEND symbols "__asm__(\".section .rodata\\ntroupe_file_${number}:\\n.incbin \\\"${file}\\\"\\ntroupe_file_${number}_end:\\n.byte 0\\n.previous\\n\");\n")
    string(APPEND symbols "extern \"C\" const char troupe_file_${number}[];\nextern \"C\" const char troupe_file_${number}_end[];\n")
    if(number GREATER 0)
      file(RELATIVE_PATH name ${E_DASHBOARD} ${file})
      string(APPEND rows "      EmbeddedFile{\"${name}\", {troupe_file_${number}, static_cast<std::size_t>(troupe_file_${number}_end - troupe_file_${number})}},\n")
    endif()
    math(EXPR number "${number} + 1")
  endforeach()
  math(EXPR dashboard "${number} - 1")
  set(text "// Made by cmake/Embed.cmake.
#include <array>
#include <cstddef>

#include \"service/assets/embedded.hpp\"

${symbols}
namespace troupe::service {

std::string_view embedded_openapi() noexcept {
  return {troupe_file_0, static_cast<std::size_t>(troupe_file_0_end - troupe_file_0)};
}

std::span<const EmbeddedFile> embedded_dashboard() noexcept {
  static const std::array<EmbeddedFile, ${dashboard}> files{
${rows}  };
  return files;
}

}  // namespace troupe::service
")
  file(CONFIGURE OUTPUT ${E_OUTPUT} CONTENT "${text}" @ONLY)
  set_source_files_properties(${E_OUTPUT} PROPERTIES OBJECT_DEPENDS "${E_OPENAPI};${files}" SKIP_UNITY_BUILD_INCLUSION ON SKIP_PRECOMPILE_HEADERS ON)
endfunction()
