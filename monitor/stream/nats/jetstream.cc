#include "monitor/stream/nats/jetstream.h"

#include <nats/nats.h>

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "kvm/base/text.h"
#include "monitor/stream/nats/subject.h"

namespace vcpulse::stream {
namespace {

// A chunk with its headers: what one on any wire of ours may have (docs/streaming.md).
constexpr int32_t kLargestMessage = 1 << 20;
// Longer than the margin for which agents keep what was acknowledged, so that their proof of it is
// known for what it is (publish_ledger.h).
constexpr int64_t kDuplicates_ns = 300'000'000'000;
constexpr int64_t kUnlimited = -1;
constexpr int64_t kMaxAge_ns = 72 * 3'600'000'000'000;

struct DestroyInfo {
  void operator()(jsStreamInfo* info) const { jsStreamInfo_Destroy(info); }
};
using StreamInfo = std::unique_ptr<jsStreamInfo, DestroyInfo>;

absl::StatusOr<StreamInfo> InfoOf(const NatsConnection& connection, jsCtx* context) {
  jsStreamInfo* info = nullptr;
  jsErrCode code = static_cast<jsErrCode>(0);
  const natsStatus status = js_GetStreamInfo(&info, context, kJetStreamName, nullptr, &code);
  if (status == NATS_OK) return StreamInfo(info);
  return JetStreamError(connection, status, code, absl::StrCat("the stream ", kJetStreamName));
}

std::vector<std::string> WrongIn(const jsStreamConfig& config) {
  std::vector<std::string> wrong;
  const auto takes = [](const char* subject) {
    return std::strcmp(subject, kAllSubjects) == 0 || std::strcmp(subject, ">") == 0 ||
           std::strcmp(subject, "vcpulse.>") == 0;
  };
  if (std::none_of(config.Subjects, config.Subjects + config.SubjectsLen, takes)) {
    wrong.push_back(absl::StrCat("it does not take ", kAllSubjects));
  }
  if (config.Storage != js_FileStorage) wrong.emplace_back("it is in memory alone");
  if (config.NoAck) wrong.emplace_back("it acknowledges nothing");
  if (config.Retention != js_LimitsPolicy) {
    wrong.emplace_back("its retention is not by limits, so a second consumer would miss chunks");
  }
  if (config.Duplicates < kDuplicates_ns &&
      (config.MaxAge == 0 || config.Duplicates < config.MaxAge)) {
    wrong.emplace_back("it knows the ids of chunks for less than 5 minutes");
  }
  if (config.MaxMsgSize > 0 && config.MaxMsgSize < kLargestMessage) {
    wrong.push_back(absl::StrCat("its largest message is ", config.MaxMsgSize, " bytes, and ",
                                 kLargestMessage, " are needed"));
  }
  return wrong;
}

// Servers that hold it now. One that is in no cluster takes any number of replicas of a stream that
// it has, and goes on alone.
int64_t HoldersOf(const jsStreamInfo& info) {
  return 1 + (info.Cluster == nullptr ? 0 : info.Cluster->ReplicasLen);
}

std::string Described(const jsStreamInfo& info) {
  const jsStreamConfig& config = *info.Config;
  const std::string bytes = config.MaxBytes > 0
                                ? SizeText(static_cast<uint64_t>(config.MaxBytes)) + " at most"
                                : "no limit of bytes";
  const std::string age =
      config.MaxAge > 0
          ? absl::StrCat("kept for ", absl::FormatDuration(absl::Nanoseconds(config.MaxAge)))
          : "kept for ever";
  std::string replicas = Plural(static_cast<uint64_t>(config.Replicas), "replica");
  if (const int64_t holders = HoldersOf(info); holders < config.Replicas) {
    absl::StrAppend(&replicas, " (only ", holders, " of them there",
                    info.Cluster == nullptr ? ", as this server is in no cluster)" : " yet)");
  }
  return absl::StrCat("the stream ", kJetStreamName, " takes ", kAllSubjects, ": ", replicas, ", ",
                      age, ", ", bytes);
}

}  // namespace

void CloseJetStream::operator()(jsCtx* context) const { jsCtx_Destroy(context); }

absl::Status JetStreamError(const NatsConnection& connection, int nats_status, int error_code,
                            const std::string& what) {
  const auto status = static_cast<natsStatus>(nats_status);
  if (status == NATS_OK) return absl::OkStatus();
  const std::string text = absl::StrCat(what, ": ", NatsWords(status));
  if (error_code == JSStreamNotFoundErr || status == NATS_NOT_FOUND) {
    return absl::NotFoundError(text);
  }
  if (status == NATS_TIMEOUT) {
    // What this user may not ask or hear, the server refuses apart from the answer.
    if (const std::string denial = connection.LastDenial(); !denial.empty()) {
      return absl::PermissionDeniedError(absl::StrCat(what, ": ", denial));
    }
    return absl::UnavailableError(absl::StrCat(
        what, ": the broker does not answer (is JetStream on? may this user ask for $JS.API.>?)"));
  }
  if (status == NATS_NO_RESPONDERS || error_code == JSNotEnabledErr) {
    return absl::FailedPreconditionError(
        absl::StrCat(what, ": JetStream is not on at the broker (`nats-server -js -sd DIR`)"));
  }
  return absl::UnavailableError(text);
}

absl::StatusOr<JetStream> OpenJetStream(const NatsConnection& connection) {
  jsCtx* context = nullptr;
  const natsStatus status = natsConnection_JetStream(&context, connection.handle(), nullptr);
  if (status != NATS_OK) return JetStreamError(connection, status, 0, "JetStream");
  return JetStream(context);
}

absl::Status CheckJetStream(const NatsConnection& connection, const std::string& address) {
  const auto context = OpenJetStream(connection);
  if (!context.ok()) return context.status();
  const std::string command = absl::StrCat("`vcpulse collect --from ", address, " --make-stream`");
  const auto info = InfoOf(connection, context->get());
  if (absl::IsNotFound(info.status())) {
    return absl::FailedPreconditionError(
        absl::StrCat("the broker has no stream ", kJetStreamName, ": ", command, " makes it"));
  }
  if (!info.ok()) return info.status();
  const std::vector<std::string> wrong = WrongIn(*(*info)->Config);
  if (wrong.empty()) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat("the broker's stream ", kJetStreamName,
                                                    " is of no use: ", absl::StrJoin(wrong, "; "),
                                                    ": ", command, " changes what can be changed"));
}

absl::StatusOr<std::string> MakeJetStream(const NatsConnection& connection,
                                          const JetStreamLimits& limits) {
  const auto context = OpenJetStream(connection);
  if (!context.ok()) return context.status();
  jsStreamConfig config;
  jsStreamConfig_Init(&config);
  const auto there = InfoOf(connection, context->get());
  if (!there.ok() && !absl::IsNotFound(there.status())) return there.status();
  const bool is_there = there.ok();
  if (is_there && limits.replicas.value_or(1) > 1 && (*there)->Cluster == nullptr) {
    return absl::FailedPreconditionError(absl::StrCat("--replicas ", *limits.replicas,
                                                      ": this server is in no cluster, and holds ",
                                                      "the stream ", kJetStreamName, " alone"));
  }
  if (is_there) {
    config = *(*there)->Config;
  } else {
    config.Name = kJetStreamName;
    config.Storage = js_FileStorage;
    config.Retention = js_LimitsPolicy;
    config.Discard = js_DiscardOld;
    config.Replicas = 1;
    config.MaxAge = kMaxAge_ns;
    config.MaxBytes = kUnlimited;
  }
  const char* subjects[] = {kAllSubjects};
  config.Subjects = subjects;
  config.SubjectsLen = 1;
  config.NoAck = false;
  if (config.MaxMsgSize > 0)
    config.MaxMsgSize = std::max<int32_t>(config.MaxMsgSize, kLargestMessage);
  if (limits.replicas) config.Replicas = *limits.replicas;
  if (limits.max_age) config.MaxAge = limits.max_age->count();
  if (limits.max_bytes) config.MaxBytes = static_cast<int64_t>(*limits.max_bytes);
  config.Duplicates = config.MaxAge > 0 ? std::min(kDuplicates_ns, config.MaxAge) : kDuplicates_ns;
  jsStreamInfo* info = nullptr;
  jsErrCode code = static_cast<jsErrCode>(0);
  const natsStatus status = is_there
                                ? js_UpdateStream(&info, context->get(), &config, nullptr, &code)
                                : js_AddStream(&info, context->get(), &config, nullptr, &code);
  if (status != NATS_OK) {
    return JetStreamError(
        connection, status, code,
        absl::StrCat(is_there ? "changing" : "making", " the stream ", kJetStreamName));
  }
  return Described(*StreamInfo(info));
}

absl::StatusOr<std::unique_ptr<NatsConnection>> ConnectNow(
    const NatsOptions& options, std::function<void(const std::string& why)> refused) {
  auto connection = NatsConnection::Open(
      options, {.connected = [] {},
                .disconnected = [] {},
                .trouble =
                    [refused = std::move(refused)](const std::string& why, bool needs_people) {
                      if (refused && needs_people) refused(why);
                    },
                .closed = [](const std::string&, bool) {}});
  if (connection.ok() || absl::IsInvalidArgument(connection.status())) return connection;
  return absl::Status(connection.status().code(),
                      absl::StrCat(NamesOf(options), ": ", connection.status().message()));
}

}  // namespace vcpulse::stream
