# vcpulse_embed_texts(OUT HEADER NAMESPACE TYPE FUNCTION FILE...): writes the source OUT, in which FUNCTION() gives a span
# of TYPE{file name, text} of the files, in their order. They are compiled in: the program may run in a root without files.
function(vcpulse_embed_texts out header namespace type function)
  set(texts "")
  foreach(path IN LISTS ARGN)
    set(file ${CMAKE_CURRENT_SOURCE_DIR}/${path})
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
    file(READ ${file} text)
    get_filename_component(name ${path} NAME)
    string(APPEND texts "    {\"${name}\", R\"embedded(${text})embedded\"},\n")
  endforeach()
  file(GENERATE OUTPUT ${out} CONTENT
"#include \"${header}\"

namespace ${namespace} {
namespace {

constexpr ${type} k${function}[] = {
${texts}};

}  // namespace

std::span<const ${type}> ${function}() { return k${function}; }

}  // namespace ${namespace}
")
endfunction()
