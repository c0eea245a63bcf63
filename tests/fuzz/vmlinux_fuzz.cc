// The ELF file of a guest's kernel: any bytes.
#include <cstdint>
#include <span>

#include "monitor/guest_image/vmlinux.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto kernel = vcpulse::guest_image::ParseVmlinux(std::span(data, size));
  if (!kernel.ok()) return 0;
  for (const uint64_t address : {uint64_t{0}, uint64_t{0x1000}, uint64_t{0xffffffff81000000}}) {
    static_cast<void>(kernel->symbols.Find(address));
    static_cast<void>(kernel->code.WaitsAt(address));
    static_cast<void>(kernel->orc.Find(address));
  }
  return 0;
}
