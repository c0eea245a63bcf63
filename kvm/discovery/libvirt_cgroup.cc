#include "kvm/discovery/libvirt_cgroup.h"

#include <algorithm>

#include "kvm/base/text.h"

namespace vcpulse::kvm {
namespace {

// "\x2d" becomes '-'; anything else stays.
std::string UnescapeUnit(std::string_view text) {
  std::string plain;
  while (!text.empty()) {
    const auto byte = text.starts_with("\\x") && text.size() >= 4
                          ? ParseNumber<unsigned char>(text.substr(2, 2), 16)
                          : std::nullopt;
    plain += byte ? static_cast<char>(*byte) : text.front();
    text.remove_prefix(byte ? 4 : 1);
  }
  return plain;
}

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// "web-1" of "qemu-3-web-1": driver, libvirt's number, name. Nothing for another form.
std::optional<std::string> WithoutDriverAndId(std::string_view machine) {
  const size_t driver = machine.find('-');
  if (driver == std::string_view::npos || driver == 0) return std::nullopt;
  std::string_view rest = machine.substr(driver + 1);
  const size_t id = std::ranges::find_if_not(rest, IsDigit) - rest.begin();
  if (id == 0 || id + 1 >= rest.size() || rest[id] != '-') return std::nullopt;
  return std::string(rest.substr(id + 1));
}

// The VM's name from one component of a path, or nothing where it is no machine of libvirt's.
std::optional<std::string> MachineName(std::string_view component) {
  constexpr std::string_view kPrefix = "machine-";
  constexpr std::string_view kSuffix = ".scope";
  if (component.starts_with(kPrefix) && component.ends_with(kSuffix) &&
      component.size() > kPrefix.size() + kSuffix.size()) {
    component.remove_prefix(kPrefix.size());
    component.remove_suffix(kSuffix.size());
    return WithoutDriverAndId(UnescapeUnit(component));
  }
  const size_t libvirt = component.rfind(".libvirt-");
  if (libvirt == std::string_view::npos || libvirt == 0) return std::nullopt;
  const std::string_view name = component.substr(0, libvirt);
  const std::string_view driver = component.substr(libvirt + std::string_view(".libvirt-").size());
  if (name.starts_with(driver)) {
    if (auto plain = WithoutDriverAndId(name)) return plain;
  }
  return std::string(name);
}

void ParsePath(std::string_view path, LibvirtCgroup& found) {
  constexpr std::string_view kVcpu = "vcpu";
  bool inside = false;
  while (!path.empty()) {
    const std::string_view component = path.substr(0, path.find('/'));
    path.remove_prefix(std::min(component.size() + 1, path.size()));
    if (const auto machine = MachineName(component)) {
      found.machine = *machine;
      inside = true;
    } else if (inside && component.starts_with(kVcpu) && component.size() > kVcpu.size() &&
               IsDigit(component[kVcpu.size()])) {
      const auto vcpu = ParseNumber<int>(component.substr(kVcpu.size()));
      if (vcpu) found.vcpu = vcpu;
    }
  }
}

}  // namespace

LibvirtCgroup ParseLibvirtCgroup(std::string_view text) {
  LibvirtCgroup found;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    const size_t controllers = line.find(':');
    const size_t path = controllers == std::string_view::npos ? std::string_view::npos
                                                              : line.find(':', controllers + 1);
    if (path != std::string_view::npos) ParsePath(line.substr(path + 1), found);
  }
  return found;
}

}  // namespace vcpulse::kvm
