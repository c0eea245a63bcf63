#include "monitor/control/response.h"

#include <array>
#include <boost/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kvm/base/text.h"

namespace vcpulse::control {
namespace {

namespace json = boost::json;

constexpr size_t kLongestText_bytes = 4096;  // of an output's path, a VM's name, an error
// What a status holds beside its VMs, each text escaped at its worst ("\u0001").
constexpr size_t kRestOfStatus_bytes = 3 * 6 * kLongestText_bytes + 1024;

constexpr std::array kStates = {RecordingState::kRecording, RecordingState::kPaused,
                                RecordingState::kStopping};

json::string Text(std::string_view text) {
  std::string valid(text.substr(0, kLongestText_bytes));
  for (size_t i = 0; i < valid.size();) {
    const size_t length = Utf8SequenceLength(std::string_view(valid).substr(i));
    if (length == 0) valid[i] = '?';
    i += length == 0 ? 1 : length;
  }
  return json::string(valid.data(), valid.size());
}

void AddStatus(const RecordingStatus& status, json::object& object) {
  object["state"] = Text(ToString(status.state));
  object["elapsed_ns"] = status.elapsed_ns;
  object["ticks"] = status.ticks;
  object["vcpu_samples"] = status.vcpu_samples;
  object["gaps"] = status.gaps;
  object["output"] = Text(status.output);
  object["phase"] = status.phase ? json::value(Text(*status.phase)) : json::value(nullptr);
  object["markers"] = status.markers;
  object["reader"] = Text(status.reader);
  json::array& vms = object["vms"].emplace_array();
  uint64_t left_out = status.vms_left_out;
  size_t size = kRestOfStatus_bytes;
  for (const RecordingStatus::Vm& vm : status.vms) {
    json::object one{{"name", Text(vm.name)}, {"pid", vm.pid}, {"vcpus", vm.vcpus}};
    size += json::serialize(one).size() + 1;
    if (size > kLongestAnswer_bytes) {
      ++left_out;
    } else {
      vms.push_back(std::move(one));
    }
  }
  object["vms_left_out"] = left_out;
}

// Takes members of an object apart, and keeps the first thing that is not as it should be.
class Members {
 public:
  explicit Members(const json::object& object) : object_(object) {}

  const json::value* Find(std::string_view name) const {
    return object_.if_contains(json::string_view(name.data(), name.size()));
  }

  template <typename T>
  T Number(std::string_view name) {
    const json::value* value = Find(name);
    if (value != nullptr && value->is_number()) {
      json::error_code error;
      const T number = value->to_number<T>(error);
      if (!error) return number;
    }
    return Wrong<T>(name);
  }

  std::string String(std::string_view name) {
    const json::value* value = Find(name);
    if (value == nullptr || !value->is_string()) return Wrong<std::string>(name);
    return {value->get_string().data(), value->get_string().size()};
  }

  const json::array* Array(std::string_view name) {
    const json::value* value = Find(name);
    if (value == nullptr || !value->is_array()) return Wrong<const json::array*>(name);
    return &value->get_array();
  }

  template <typename T>
  T Wrong(std::string_view name) {
    if (status_.ok()) {
      status_ = absl::InvalidArgumentError(
          absl::StrCat("its '", ToAbsl(name), "' is missing or not of the kind known"));
    }
    return T{};
  }

  const absl::Status& status() const { return status_; }

 private:
  const json::object& object_;
  absl::Status status_;
};

absl::StatusOr<RecordingStatus> ReadStatus(const json::object& object) {
  Members members(object);
  RecordingStatus status;
  const std::string state = members.String("state");
  bool known = false;
  for (const RecordingState candidate : kStates) {
    if (ToString(candidate) != state) continue;
    status.state = candidate;
    known = true;
  }
  if (!known) members.Wrong<int>("state");
  status.elapsed_ns = members.Number<int64_t>("elapsed_ns");
  status.ticks = members.Number<uint64_t>("ticks");
  status.vcpu_samples = members.Number<uint64_t>("vcpu_samples");
  status.gaps = members.Number<uint64_t>("gaps");
  status.output = members.String("output");
  const json::value* phase = members.Find("phase");
  if (phase != nullptr && !phase->is_null()) status.phase = members.String("phase");
  status.markers = members.Number<uint64_t>("markers");
  // Older versions do not send it.
  if (members.Find("reader") != nullptr) status.reader = members.String("reader");
  status.vms_left_out = members.Number<uint64_t>("vms_left_out");
  if (const json::array* vms = members.Array("vms")) {
    for (const json::value& value : *vms) {
      if (!value.is_object()) return absl::InvalidArgumentError("its 'vms' holds no objects");
      Members vm(value.get_object());
      status.vms.push_back({.name = vm.String("name"),
                            .pid = vm.Number<int>("pid"),
                            .vcpus = vm.Number<uint64_t>("vcpus")});
      if (!vm.status().ok()) return vm.status();
    }
  }
  if (!members.status().ok()) return members.status();
  return status;
}

}  // namespace

std::string_view ToString(RecordingState state) {
  switch (state) {
    case RecordingState::kRecording:
      return "recording";
    case RecordingState::kPaused:
      return "paused";
    case RecordingState::kStopping:
      return "stopping";
  }
  return "unknown";
}

std::string ResponseLine(const Response& response) {
  json::object object;
  object["ok"] = response.error.ok();
  if (!response.error.ok()) object["error"] = Text(ToStd(response.error.message()));
  if (response.mono_ns) object["mono_ns"] = *response.mono_ns;
  if (response.status) AddStatus(*response.status, object);
  return json::serialize(object) + "\n";
}

absl::StatusOr<Response> ParseResponse(std::string_view line) {
  json::error_code error;
  json::parse_options options;
  options.max_depth = 8;
  const json::value value =
      json::parse(json::string_view(line.data(), line.size()), error, {}, options);
  if (error) return absl::InvalidArgumentError("it is not JSON");
  const json::object* object = value.if_object();
  const json::value* ok = object == nullptr ? nullptr : object->if_contains("ok");
  if (ok == nullptr || !ok->is_bool()) return absl::InvalidArgumentError("it has no 'ok'");
  Response response;
  Members members(*object);
  if (!ok->get_bool()) {
    response.error = absl::FailedPreconditionError(members.String("error"));
    if (!members.status().ok()) return members.status();
    return response;
  }
  if (members.Find("mono_ns") != nullptr) response.mono_ns = members.Number<int64_t>("mono_ns");
  if (!members.status().ok()) return members.status();
  if (members.Find("state") != nullptr) {
    absl::StatusOr<RecordingStatus> status = ReadStatus(*object);
    if (!status.ok()) return status.status();
    response.status = *std::move(status);
  }
  return response;
}

}  // namespace vcpulse::control
