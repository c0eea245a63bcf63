#include "kvm/discovery/qemu_command_line.h"

#include <algorithm>
#include <map>

namespace vcpulse::kvm {
namespace {

using Options = std::vector<std::pair<std::string, std::string>>;

// The last value of `key`, as QEMU takes it, or "".
std::string Get(const Options& options, std::string_view key) {
  for (auto option = options.rbegin(); option != options.rend(); ++option) {
    if (option->first == key) return option->second;
  }
  return "";
}

bool IsOn(std::string_view value) { return value == "on" || value == "yes" || value == "true"; }

// Accelerators in the order in which QEMU tries them, reduced to one answer.
Accelerator Reduce(const std::vector<std::string>& accelerators) {
  if (accelerators.empty()) return Accelerator::kUnknown;
  const auto all = [&accelerators](std::string_view name) {
    return std::ranges::all_of(accelerators,
                               [name](const std::string& given) { return given == name; });
  };
  if (all("kvm")) return Accelerator::kKvm;
  if (all("tcg")) return Accelerator::kTcg;
  return Accelerator::kUnknown;
}

void AppendColonList(std::string_view text, std::vector<std::string>& out) {
  while (!text.empty()) {
    const size_t colon = text.find(':');
    if (colon != 0) out.emplace_back(text.substr(0, colon));
    if (colon == std::string_view::npos) break;
    text.remove_prefix(colon + 1);
  }
}

// kernel_irqchip (-machine) or kernel-irqchip (-accel): on, off or split; QEMU takes either
// spelling. With split the local APIC, and so the halt, stays in the kernel.
void SetIrqchip(const Options& options, QemuCommandLine& result) {
  for (const auto& [key, value] : options) {
    if (key == "kernel_irqchip" || key == "kernel-irqchip") {
      result.userspace_irqchip = value == "off" || value == "no" || value == "false";
    }
  }
}

// -machine's confidential-guest-support=ID, before QEMU 6.0 memory-encryption=ID.
void SetConfidential(const Options& options, QemuCommandLine& result) {
  for (const auto& [key, value] : options) {
    result.is_confidential |= key == "confidential-guest-support" || key == "memory-encryption";
  }
}

std::string TcpAddress(const std::string& host, const std::string& port) {
  const bool bare_ipv6 = host.find(':') != std::string::npos && host.front() != '[';
  const std::string shown = host.empty() ? "localhost" : bare_ipv6 ? "[" + host + "]" : host;
  return "tcp:" + shown + ":" + port;
}

// The address of a character device that listens, or "": one that connects out, or is handed over
// as a descriptor, cannot be reached by a client.
std::string ListenAddress(const Options& chardev) {
  if (!IsOn(Get(chardev, "server"))) return "";
  const std::string path = Get(chardev, "path");
  if (!path.empty() && !IsOn(Get(chardev, "abstract"))) return "unix:" + path;
  const std::string port = Get(chardev, "port");
  return port.empty() ? "" : TcpAddress(Get(chardev, "host"), port);
}

// The address in the older form `unix:PATH,server=on` or `tcp:HOST:PORT,server=on`, or "".
std::string LegacyListenAddress(std::string_view text) {
  const Options options = ParseQemuOptions(text, "address");
  if (!IsOn(Get(options, "server"))) return "";
  const std::string address = Get(options, "address");
  if (address.starts_with("unix:")) return address.size() > 5 ? address : "";
  if (!address.starts_with("tcp:")) return "";
  const size_t colon = address.rfind(':');
  if (colon < 4 || colon + 1 == address.size()) return "";
  return TcpAddress(address.substr(4, colon - 4), address.substr(colon + 1));
}

}  // namespace

Options ParseQemuOptions(std::string_view text, std::string_view implied_key) {
  Options options;
  bool first = true;
  size_t position = 0;
  while (position < text.size()) {
    std::string item;
    for (; position < text.size(); ++position) {
      if (text[position] == ',') {
        if (text.substr(position + 1).starts_with(',')) {
          ++position;
        } else {
          break;
        }
      }
      item += text[position];
    }
    ++position;  // past the separator

    const size_t equals = item.find('=');
    if (equals != std::string::npos) {
      options.emplace_back(item.substr(0, equals), item.substr(equals + 1));
    } else if (first && !implied_key.empty()) {
      options.emplace_back(implied_key, item);
    } else if (!item.empty()) {
      options.emplace_back(item, "on");
    }
    first = false;
  }
  return options;
}

bool IsQemuProgram(std::string_view argument0) {
  const size_t slash = argument0.rfind('/');
  if (slash != std::string_view::npos) argument0.remove_prefix(slash + 1);
  return argument0.find("qemu-system") != std::string_view::npos || argument0 == "qemu-kvm" ||
         argument0 == "kvm";
}

QemuCommandLine ParseQemuCommandLine(std::span<const std::string> arguments) {
  QemuCommandLine result;
  std::vector<std::string> accelerators;
  std::map<std::string, std::string> listening_chardevs;  // id -> address
  std::vector<std::string> control_chardevs;

  for (size_t i = 1; i < arguments.size(); ++i) {
    std::string_view option = arguments[i];
    if (!option.starts_with('-')) continue;
    option.remove_prefix(option.starts_with("--") ? 2 : 1);
    if (option == "enable-kvm") {
      accelerators.emplace_back("kvm");
      continue;
    }
    if (i + 1 == arguments.size()) break;
    const std::string& value = arguments[i + 1];
    if (option == "name") {
      const Options options = ParseQemuOptions(value, "guest");
      if (const std::string name = Get(options, "guest"); !name.empty()) result.name = name;
      if (const std::string on = Get(options, "debug-threads"); !on.empty()) {
        result.debug_threads = IsOn(on);
      }
    } else if (option == "uuid") {
      result.uuid = value;
    } else if (option == "accel") {
      const Options options = ParseQemuOptions(value, "accel");
      AppendColonList(Get(options, "accel"), accelerators);
      SetIrqchip(options, result);
    } else if (option == "machine" || option == "M") {
      const Options options = ParseQemuOptions(value, "type");
      AppendColonList(Get(options, "accel"), accelerators);
      SetIrqchip(options, result);
      SetConfidential(options, result);
    } else if (option == "qmp" || option == "qmp-pretty") {
      const std::string address = LegacyListenAddress(value);
      if (!address.empty()) result.qmp_addresses.push_back(address);
    } else if (option == "chardev") {
      const Options options = ParseQemuOptions(value, "backend");
      const std::string address = ListenAddress(options);
      if (Get(options, "backend") == "socket" && !address.empty()) {
        listening_chardevs[Get(options, "id")] = address;
      }
    } else if (option == "mon") {
      const Options options = ParseQemuOptions(value, "chardev");
      if (Get(options, "mode") == "control") control_chardevs.push_back(Get(options, "chardev"));
    } else {
      continue;  // may take no argument: what follows is looked at by itself
    }
    ++i;
  }

  result.accelerator = Reduce(accelerators);
  for (const std::string& id : control_chardevs) {
    const auto chardev = listening_chardevs.find(id);
    if (chardev != listening_chardevs.end()) result.qmp_addresses.push_back(chardev->second);
  }
  return result;
}

}  // namespace vcpulse::kvm
