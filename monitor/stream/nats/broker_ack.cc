#include "monitor/stream/nats/broker_ack.h"

#include <algorithm>
#include <array>
#include <boost/json.hpp>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kvm/base/text.h"

namespace vcpulse::stream {
namespace {

namespace json = boost::json;

constexpr size_t kLongestAck = 64 << 10;

// Errors of JetStream that come again until its stream's limits are changed.
constexpr std::array<uint64_t, 5> kOfLimits = {
    10054,  // message size exceeds maximum allowed
    10047,  // insufficient storage resources available
    10023,  // insufficient resources
    10077,  // maximum messages, bytes or messages per subject exceeded (discard new)
    10109,  // the stream is sealed
};

uint64_t NumberOf(const json::object& object, std::string_view name) {
  const json::value* value = object.if_contains(name);
  if (value == nullptr) return 0;
  if (value->is_uint64()) return value->get_uint64();
  return value->is_int64() && value->get_int64() > 0 ? static_cast<uint64_t>(value->get_int64())
                                                     : 0;
}

absl::Status StatusOf(const json::object& error) {
  const json::value* description = error.if_contains("description");
  const uint64_t code = NumberOf(error, "err_code");
  const std::string text = description != nullptr && description->is_string()
                               ? Printable(std::string_view(description->get_string().data(),
                                                            description->get_string().size()))
                               : absl::StrCat("error ", code);
  if (std::ranges::find(kOfLimits, code) != kOfLimits.end()) {
    return absl::FailedPreconditionError(text);
  }
  return absl::UnavailableError(text);
}

std::optional<json::object> ObjectOf(std::string_view text) {
  if (text.size() > kLongestAck) return std::nullopt;
  boost::system::error_code error;
  json::value value = json::parse({text.data(), text.size()}, error);
  if (error || !value.is_object()) return std::nullopt;
  return std::move(value.get_object());
}

// Null where it is none.
const json::object* RefusalIn(const json::object& answer) {
  const json::value* refusal = answer.if_contains("error");
  return refusal == nullptr ? nullptr : refusal->if_object();
}

}  // namespace

bool IsBrokerError(std::string_view text, uint64_t code) {
  const auto object = ObjectOf(text);
  const json::object* refusal = object ? RefusalIn(*object) : nullptr;
  return refusal != nullptr && NumberOf(*refusal, "err_code") == code;
}

absl::StatusOr<BrokerAck> ParseBrokerAck(std::string_view text) {
  const auto none = [] { return absl::DataLossError("the answer is no acknowledgement"); };
  const auto parsed = ObjectOf(text);
  if (!parsed) return none();
  const json::object& object = *parsed;
  if (const json::object* refusal = RefusalIn(object)) return StatusOf(*refusal);
  const uint64_t sequence = NumberOf(object, "seq");
  if (sequence == 0) return none();
  const json::value* duplicate = object.if_contains("duplicate");
  return BrokerAck{
      .sequence = sequence,
      .was_known = duplicate != nullptr && duplicate->is_bool() && duplicate->get_bool()};
}

}  // namespace vcpulse::stream
