// The parser of QEMU's command line, from the bytes of a cmdline file.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "kvm/discovery/qemu_command_line.h"
#include "kvm/discovery/qmp_client.h"
#include "kvm/discovery/vmms.h"
#include "kvm/proc_files.h"

namespace {

using namespace vcpulse::kvm;

void Check(bool condition) {
  if (!condition) std::abort();
}

std::string Escaped(std::string_view text) {
  std::string escaped;
  for (const char c : text) escaped += c == ',' ? ",," : std::string(1, c);
  return escaped;
}

// Written with every comma doubled and every key named, options say the same again.
void CheckOptions(std::string_view text) {
  std::string again;
  const auto options = ParseQemuOptions(text, "implied");
  for (const auto& [key, value] : options) {
    again += (again.empty() ? "" : ",") + Escaped(key) + "=" + Escaped(value);
  }
  Check(ParseQemuOptions(again, "implied") == options);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const std::vector<std::string> arguments = ParseCmdline(text);
  for (const std::string& argument : arguments) {
    CheckOptions(argument);
    // Whatever the text: an address or a refusal.
    const auto address = ParseQmpAddress(argument);
    Check(address.ok() ? address->path.empty() != address->host.empty()
                       : !address.status().message().empty());
  }
  if (!arguments.empty()) IsQemuProgram(arguments.front());
  for (const Vmm& vmm : Vmms()) {
    // A name is some part of an argument.
    const std::string name = vmm.vm_name(arguments);
    Check(name.empty() || text.find(name) != std::string_view::npos);
  }

  const QemuCommandLine line = ParseQemuCommandLine(arguments);
  for (const std::string& address : line.qmp_addresses) {
    Check(address.starts_with("unix:") || address.starts_with("tcp:"));
  }
  // What was understood, said plainly, is understood as the same.
  std::vector<std::string> plain = {"qemu-system-x86_64"};
  if (!line.name.empty() || line.debug_threads) {
    plain.insert(plain.end(), {"-name", "guest=" + Escaped(line.name) + ",debug-threads=" +
                                            (line.debug_threads ? "on" : "off")});
  }
  if (!line.uuid.empty()) plain.insert(plain.end(), {"-uuid", line.uuid});
  const QemuCommandLine again = ParseQemuCommandLine(plain);
  Check(again.name == line.name && again.uuid == line.uuid &&
        again.debug_threads == line.debug_threads);
  return 0;
}
