#include "monitor/page/compress.h"

#include <zlib.h>

namespace vcpulse::page {

std::string Deflate(std::string_view bytes) {
  uLongf length = compressBound(bytes.size());
  std::string out(length, '\0');
  // Cannot fail: the bound is that of the worst case.
  compress2(reinterpret_cast<Bytef*>(out.data()), &length,
            reinterpret_cast<const Bytef*>(bytes.data()), bytes.size(), Z_DEFAULT_COMPRESSION);
  out.resize(length);
  return out;
}

}  // namespace vcpulse::page
