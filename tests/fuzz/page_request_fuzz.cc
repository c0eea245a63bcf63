// What `report --serve` is sent and told: "METHOD TARGET HOST", and the same bytes as an address.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "monitor/http/server.h"
#include "monitor/page/answer.h"

namespace {

// The first word; `rest` keeps what follows it.
std::string_view TakeWord(std::string_view& rest) {
  const std::string_view word = rest.substr(0, rest.find(' '));
  rest.remove_prefix(word.size() < rest.size() ? word.size() + 1 : word.size());
  return word;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace vcpulse::page;
  const std::string text(reinterpret_cast<const char*>(data), size);
  const auto address = vcpulse::http::ParseLoopbackAddress(text);
  if (address.ok() && address->host != "127.0.0.1" && address->host != "::1" &&
      address->host != "localhost") {
    std::abort();
  }
  const Source source{.page = [] { return std::string("page"); },
                      .summary = [] { return std::string("summary"); },
                      .bins = [](const BinsWanted& wanted,
                                 const std::function<bool()>&) -> absl::StatusOr<std::string> {
                        if (wanted.from_ns >= wanted.to_ns || wanted.bins < 1 ||
                            wanted.bins > BinsWanted::kMostBins) {
                          std::abort();
                        }
                        return std::string("bins");
                      }};
  std::string_view rest = text;
  const std::string_view method = TakeWord(rest);
  const std::string_view target = TakeWord(rest);
  const vcpulse::http::Answer answer =
      Answer({.method = method, .target = target, .host = rest, .port = 8080}, source);
  // Whoever names another host is told nothing of the timeline.
  const bool told = answer.status == 200;
  if (told && rest != "127.0.0.1:8080" && rest != "[::1]:8080" && rest != "localhost:8080") {
    std::abort();
  }
  return 0;
}
