#include "monitor/rollup/store/tick_files.h"

#include <algorithm>
#include <span>
#include <string_view>
#include <variant>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "monitor/export/event_columns.h"
#include "monitor/stream/disk/names.h"
#include "monitor/stream/protocol/agent_id.h"
#include "monitor/timeline/reader.h"

namespace vcpulse::rollup {
namespace {

// Whether the last record of a timeline is its Summary.
absl::StatusOr<bool> HasEnded(stream::Files& files, const std::string& path, uint64_t bytes) {
  constexpr uint64_t kTailBytes = 256u << 10;
  std::vector<uint8_t> tail(std::min(bytes, kTailBytes));
  const auto got = files.ReadAt(path, bytes - tail.size(), tail);
  if (!got.ok()) return got.status();
  const auto read = timeline::ReadTimelineBytes(
      std::span(tail).first(*got), [](const timeline::Entry&) { return absl::OkStatus(); });
  return read.ok() && read->ended_in_order;
}

absl::Status Stopped() { return absl::CancelledError("stopped"); }

}  // namespace

void TickFiles::Pass(const Now& now, const std::stop_token& stopped) {
  if (!made_) FindMade();
  const int64_t realtime_ns = now.realtime_ns;
  const auto there = StreamsBelow(files_, options_.directory);
  if (!there.ok()) return said_.Say(there.status());
  std::erase_if(streams_, [&there](const auto& known) { return !there->contains(known.first); });
  for (const StreamKey& key : *there) {
    if (stopped.stop_requested()) return;
    Stream& stream = streams_[key];
    if (realtime_ns < stream.failed_until_ns) continue;
    const absl::Status passed = PassStream(key, stream, realtime_ns, stopped);
    if (passed.ok() || stopped.stop_requested()) continue;
    // Not found: retention removed it. Aborted: it grew meanwhile.
    if (!absl::IsNotFound(passed) && !absl::IsAborted(passed)) said_.Say(passed);
    stream.failed_until_ns = realtime_ns + kRetryAfter_ns;
  }
}

void TickFiles::FindMade() {
  made_.emplace();
  ForEachDatedFile(files_, options_.parquet, said_, [this](const DatedFile& file) {
    (*made_)[{file.host_folder, file.name}] = absl::StrCat(options_.parquet, "/", file.date_folder,
                                                           "/", file.host_folder, "/", file.name);
    return false;
  });
}

absl::Status TickFiles::PassStream(const StreamKey& key, Stream& stream, int64_t realtime_ns,
                                   const std::stop_token& stopped) {
  const std::string folder = absl::StrCat(options_.directory, "/", key.first, "/", key.second);
  const auto names = TimelinesIn(files_, folder);
  if (!names.ok()) return names.status();
  std::erase_if(stream.done, [&names](const std::string& name) {
    return !std::ranges::binary_search(*names, name);
  });
  for (size_t i = 0; i < names->size() && !stopped.stop_requested(); ++i) {
    const std::string& name = (*names)[i];
    if (stream.done.contains(name)) continue;
    const std::string path = absl::StrCat(folder, "/", name);
    const bool is_newest = i + 1 == names->size();
    const auto bytes = files_.SizeOf(path);
    if (!bytes.ok()) return bytes.status();
    const bool is_known = stream.newest == name && stream.newest_bytes == *bytes;
    if (is_newest) {
      if (is_known) continue;
      const auto closed = IsClosed(path, realtime_ns);
      if (!closed.ok()) return closed.status();
      if (!*closed) continue;
    }
    if (!is_known) {
      const Source source{.key = key,
                          .folder = folder,
                          .before = std::span(*names).first(i),
                          .timeline = name,
                          .name = absl::StrCat(stream::ToHex(*stream::StreamOfFolder(key.second)),
                                               "-", name.substr(0, name.find('.')), ".parquet")};
      const absl::Status made = MakeUnlessMade(source, stream, realtime_ns, stopped);
      if (!made.ok()) return made;
    }
    if (is_newest) {
      stream.newest = name;
      stream.newest_bytes = *bytes;
      stream.rows.reset();  // nothing is expected
    } else {
      stream.done.insert(name);
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> TickFiles::IsClosed(const std::string& path, int64_t realtime_ns) {
  const auto bytes = files_.SizeOf(path);
  if (!bytes.ok()) return bytes.status();
  const auto changed_ns = files_.ModifiedAt_ns(path);
  if (!changed_ns.ok()) return changed_ns.status();
  if (realtime_ns - *changed_ns >= kSilence_ns) return true;
  if (realtime_ns - *changed_ns < kSettled_ns) return false;
  return HasEnded(files_, path, *bytes);
}

absl::Status TickFiles::MakeUnlessMade(const Source& source, Stream& stream, int64_t realtime_ns,
                                       const std::stop_token& stopped) {
  const auto changed_ns = files_.ModifiedAt_ns(source.Path());
  if (!changed_ns.ok()) return changed_ns.status();
  if (options_.max_age_ns && *changed_ns + kDay_ns <= realtime_ns - *options_.max_age_ns) {
    return absl::OkStatus();  // it would be removed
  }
  const auto made = made_->find({stream::HostPartitionOf(source.key.first), source.name});
  if (made != made_->end()) {
    const auto made_ns = files_.ModifiedAt_ns(made->second);
    if (made_ns.ok() && *made_ns >= *changed_ns) return absl::OkStatus();
  }
  absl::Status status = Make(source, stream, stopped);
  if (absl::IsInvalidArgument(status) || absl::IsUnimplemented(status)) {
    said_.Say(status);  // nothing in it can be read
    return absl::OkStatus();
  }
  return status;
}

absl::Status TickFiles::Make(const Source& source, Stream& stream, const std::stop_token& stopped) {
  const std::string part = absl::StrCat(options_.parquet, "/.", source.name, ".part");
  absl::Status status = files_.Remove(part);  // of a process that was killed
  if (!status.ok() && !absl::IsNotFound(status)) return status;
  const auto bytes = files_.SizeOf(source.Path());
  if (!bytes.ok()) return bytes.status();
  status = ReadBefore(source, stream, stopped);
  if (!status.ok()) return status;
  std::unique_ptr<exporting::ParquetExport> rows = std::move(stream.rows);
  auto first_ns = WriteRows(source, *rows, part, stopped);
  if (first_ns.ok() && files_.SizeOf(source.Path()) != bytes) {
    first_ns = absl::AbortedError(absl::StrCat(source.Path(), " grew while it was read"));
  }
  if (!first_ns.ok()) {
    static_cast<void>(files_.Remove(part));
    return first_ns.status();
  }
  const std::string host = stream::HostPartitionOf(source.key.first);
  const std::string folder =
      absl::StrCat(options_.parquet, "/date=", Utc("%Y-%m-%d", first_ns->value_or(0)), "/", host);
  status = files_.MakeDirectories(folder);
  const std::string path = absl::StrCat(folder, "/", source.name);
  if (status.ok()) status = files_.Rename(part, path);
  if (status.ok()) status = files_.SyncDirectory(folder);
  if (!status.ok()) {
    static_cast<void>(files_.Remove(part));
    return status;
  }
  std::string& made = (*made_)[{host, source.name}];
  if (!made.empty() && made != path) static_cast<void>(files_.Remove(made));
  made = path;
  stream.rows = std::move(rows);
  stream.read_to = source.timeline;
  return absl::OkStatus();
}

// Gives stream.rows what comes before the timeline, where it was not given that yet.
absl::Status TickFiles::ReadBefore(const Source& source, Stream& stream,
                                   const std::stop_token& stopped) {
  const bool goes_on =
      stream.rows != nullptr && !source.before.empty() && source.before.back() == stream.read_to;
  if (goes_on) return absl::OkStatus();
  auto rows = std::make_unique<exporting::ParquetExport>(nullptr, options_.version);
  for (const std::string& name : source.before) {
    const auto read = timeline::ReadTimeline(absl::StrCat(source.folder, "/", name),
                                             [&](const timeline::Entry& entry) -> absl::Status {
                                               if (stopped.stop_requested()) return Stopped();
                                               return rows->Add(entry);
                                             });
    const bool is_unreadable =  // as a gap
        absl::IsInvalidArgument(read.status()) || absl::IsUnimplemented(read.status());
    if (!read.ok() && !is_unreadable) return read.status();
  }
  stream.rows = std::move(rows);
  return absl::OkStatus();
}

// Until the file is synced. Returns the wall clock at the first tick of the timeline, ns since
// 1970; nothing where it has none.
absl::StatusOr<std::optional<int64_t>> TickFiles::WriteRows(const Source& source,
                                                            exporting::ParquetExport& rows,
                                                            const std::string& part,
                                                            const std::stop_token& stopped) {
  const auto file = files_.OpenToAppend(part, true);
  if (!file.ok()) return file.status();
  rows.BeginFile([&file](std::string_view bytes) {
    return (*file)->Append(std::span(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()));
  });
  absl::Status status =
      exporting::FindSets(source.Path(), [&rows](const v1::VcpuSet& set) { rows.Expect(set); });
  if (!status.ok()) return status;
  exporting::Clocks clocks;
  std::optional<int64_t> first_ns;
  const auto read =
      timeline::ReadTimeline(source.Path(), [&](const timeline::Entry& entry) -> absl::Status {
        if (stopped.stop_requested()) return Stopped();
        if (const auto* clock = std::get_if<v1::ClockSnapshot>(&entry.record)) clocks.Take(*clock);
        const auto* tick = std::get_if<timeline::TickEntry>(&entry.record);
        if (tick != nullptr && !first_ns) first_ns = clocks.Realtime(tick->sample.wake_ns);
        return rows.Add(entry);
      });
  if (!read.ok()) return read.status();
  status = rows.Finish();
  if (status.ok()) status = (*file)->Sync();
  rows.BeginFile(nullptr);  // the sink ends with this call
  if (!status.ok()) return status;
  return first_ns;
}

void TickFiles::RemoveOld(int64_t realtime_ns) {
  if (!options_.max_age_ns) return;
  const int64_t until_ns = realtime_ns - *options_.max_age_ns;
  ForEachDatedFile(files_, options_.parquet, said_, [until_ns](const DatedFile& file) {
    absl::Time day;
    if (!file.name.ends_with(".parquet") ||
        !absl::ParseTime("date=%Y-%m-%d", file.date_folder, &day, nullptr) ||
        absl::ToUnixNanos(day) + kDay_ns > until_ns) {
      return false;
    }
    return true;
  });
}

}  // namespace vcpulse::rollup
