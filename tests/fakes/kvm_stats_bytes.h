#pragma once

// A file of KVM's statistics, byte by byte as the kernel lays it out.

#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

namespace vcpulse::fakes {

struct KvmStatsBytes {
  struct Value {
    std::string name;
    std::vector<uint64_t> data;  // more than one: a histogram
    uint32_t flags = 0;          // type and unit; 0: cumulative, no unit
  };

  std::string id = "kvm-10/vcpu-0";
  std::vector<Value> values;

  std::vector<uint8_t> Bytes() const {
    constexpr uint32_t kHeader = 24;
    constexpr uint32_t kName = 48;
    const uint32_t descriptors = kHeader + kName;
    const auto data = static_cast<uint32_t>(descriptors + values.size() * (16 + kName));
    std::vector<uint8_t> out;
    const auto put = [&out](auto number) {
      const auto* bytes = reinterpret_cast<const uint8_t*>(&number);
      out.insert(out.end(), bytes, bytes + sizeof(number));
    };
    const auto put_text = [&out](const std::string& text) {
      out.insert(out.end(), text.begin(), text.end());
      out.resize(out.size() + kName - text.size());
    };
    for (const uint32_t number :
         {0u, kName, static_cast<uint32_t>(values.size()), kHeader, descriptors, data}) {
      put(number);
    }
    put_text(id);
    uint32_t offset = 0;
    for (const Value& value : values) {
      put(value.flags);
      put(int16_t{0});
      put(static_cast<uint16_t>(value.data.size()));
      put(offset);
      put(uint32_t{0});
      put_text(value.name);
      offset += static_cast<uint32_t>(8 * value.data.size());
    }
    for (const Value& value : values) {
      for (const uint64_t number : value.data) put(number);
    }
    return out;
  }
};

}  // namespace vcpulse::fakes
