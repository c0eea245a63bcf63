#include "monitor/timeline/merge.h"

#include <algorithm>
#include <filesystem>
#include <limits>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>
#include <variant>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "kvm/base/text.h"
#include "monitor/timeline/byte_source.h"
#include "monitor/timeline/chunk_decoder.h"
#include "monitor/timeline/chunk_encoder.h"
#include "monitor/timeline/chunk_scanner.h"
#include "monitor/timeline/folder_source.h"
#include "monitor/timeline/recut.h"

namespace vcpulse::timeline {
namespace {

using Found = ChunkScanner::Found;
using MergedSink = std::function<absl::Status(const MergedChunk&)>;

constexpr uint64_t kLastNumber = std::numeric_limits<uint64_t>::max();
// Places in all files where sequence numbers go back: no writer makes any, `cat` of parts one each.
constexpr size_t kMostRuns = 100'000;

bool HasRecords(const ChunkHeader& header) { return header.first_sequence <= header.last_sequence; }

absl::StatusOr<std::unique_ptr<ByteSource>> OpenPart(const std::string& file) {
  std::error_code unknown;
  if (std::filesystem::exists(file, unknown) && !std::filesystem::is_regular_file(file, unknown)) {
    return absl::InvalidArgumentError(absl::StrCat(
        file, " is not a regular file: parts are read twice, so save it to a file first"));
  }
  return OpenByteSource(file);
}

// A collector that is killed while it makes a file or directory leaves it empty.
bool IsEmpty(const std::string& path) {
  std::error_code unknown;
  return std::filesystem::is_empty(path, unknown) && !unknown;
}

// Chunks of a file whose sequence numbers do not go back.
struct Run {
  size_t part = 0;
  uint64_t begin = 0;  // offsets
  uint64_t end = kLastNumber;
  uint64_t first_sequence = 0;
};

// The chunks of a run, one by one.
class RunReader {
 public:
  RunReader(const Run& run, std::unique_ptr<ByteSource> source, std::vector<Damage>* damages)
      : run_(run), source_(std::move(source)), scanner_(source_.get(), damages, run.begin) {}

  // The chunk that is next; nothing at the end.
  const std::optional<Found>& head() const { return head_; }
  size_t part() const { return run_.part; }

  // Goes on to the next chunk; that before must have been read or skipped.
  absl::Status Advance() {
    absl::StatusOr<std::optional<Found>> next = scanner_.Next();
    if (!next.ok()) return next.status();
    head_ = *std::move(next);
    if (head_ && head_->offset >= run_.end) head_.reset();
    return absl::OkStatus();
  }
  absl::StatusOr<std::optional<std::span<const uint8_t>>> Read() {
    return scanner_.ReadPayload(*head_);
  }
  // False where it is damaged.
  absl::StatusOr<bool> Skip() { return scanner_.Skip(*head_); }

 private:
  const Run run_;
  std::unique_ptr<ByteSource> source_;
  ChunkScanner scanner_;
  std::optional<Found> head_;
};

class Merging {
 public:
  explicit Merging(const MergedSink& sink) : sink_(sink) {}

  // Finds the runs of each file. Errors: those of MergeTimelines.
  absl::Status Index(std::vector<std::string> files);
  absl::Status Write();

  MergeReport& report() { return report_; }

 private:
  absl::Status IndexPart(size_t part);
  absl::Status CheckOneRecording() const;
  absl::Status OpenRuns();
  absl::Status DropRepeated();
  void NoteDamage(size_t part, const Found& chunk, std::string reason);
  RunReader& Lowest() const;
  RunReader& Choose() const;
  absl::Status WriteHead(RunReader& run);
  absl::Status WriteRecords(const Found& found, std::span<const uint8_t> payload, size_t part);
  absl::Status CloseHole(uint64_t next);
  void NoteHole(uint64_t first, uint64_t last);
  absl::Status Finish();
  absl::Status InPart(size_t part, const absl::Status& status) const;

  const MergedSink& sink_;
  MergeReport report_;
  std::vector<std::optional<StreamId>> streams_;  // of each part
  std::vector<Run> runs_;                         // by their first sequence number
  size_t opened_ = 0;                             // of runs_
  std::vector<std::unique_ptr<RunReader>> open_;
  std::optional<uint64_t> next_;  // the record that comes next
  // Of the losses that parts tell of, and that were not passed yet, the one that reaches furthest:
  // what is not in another part is lost.
  v1::LostRecords told_;
  uint64_t last_damaged_ = 0;  // the last record that a damaged chunk held, by its header
  ChunkDecoder decoder_;
  std::vector<uint8_t> chunk_;  // the last one that was written
};

absl::Status Merging::InPart(size_t part, const absl::Status& status) const {
  if (!absl::IsUnimplemented(status)) return status;  // of the source: it names the file
  return absl::UnimplementedError(absl::StrCat(report_.parts[part].file, ": ", status.message()));
}

absl::Status Merging::Index(std::vector<std::string> files) {
  for (std::string& file : files) report_.parts.push_back({.file = std::move(file), .damages = {}});
  streams_.resize(report_.parts.size());
  for (size_t part = 0; part < report_.parts.size(); ++part) {
    if (absl::Status status = IndexPart(part); !status.ok()) return InPart(part, status);
  }
  std::ranges::stable_sort(runs_, {}, &Run::first_sequence);
  return CheckOneRecording();
}

absl::Status Merging::IndexPart(size_t part) {
  const std::string& file = report_.parts[part].file;
  const auto source = OpenPart(file);
  if (!source.ok()) return source.status();
  std::vector<Damage> noted_when_read;
  ChunkScanner scanner(source->get(), &noted_when_read);
  std::optional<uint64_t> next;
  while (true) {
    const auto found = scanner.Next();
    if (!found.ok()) return found.status();
    if (!found->has_value()) break;
    const ChunkHeader& header = (*found)->header;
    if (!streams_[part]) streams_[part] = header.stream_id;
    if (*streams_[part] != header.stream_id) {
      return absl::InvalidArgumentError(absl::StrCat(
          file, " holds several recordings, one behind the other: merge joins the parts of one"));
    }
    if (!next || header.first_sequence < *next) {
      if (next) runs_.back().end = (*found)->offset;
      if (runs_.size() == kMostRuns) {
        return absl::InvalidArgumentError(
            absl::StrCat(file, ": the sequence numbers of its chunks go back too often"));
      }
      runs_.push_back({.part = part,
                       .begin = next ? (*found)->offset : 0,
                       .first_sequence = header.first_sequence});
    }
    next = HasRecords(header) && header.last_sequence < kLastNumber ? header.last_sequence + 1
                                                                    : header.first_sequence;
    const absl::StatusOr<bool> whole = scanner.Skip(**found);
    if (!whole.ok()) return whole.status();
  }
  if (!next) report_.parts[part].damages = std::move(noted_when_read);  // it is not read again
  if (scanner.recognised()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(file, " is not a vcpulse timeline (no chunk of one was found in it)"));
}

absl::Status Merging::CheckOneRecording() const {
  std::vector<std::string> files;
  files.reserve(report_.parts.size());
  for (const MergeReport::Part& part : report_.parts) files.push_back(part.file);
  const std::vector<std::string> recordings = RecordingsOf(files);
  if (recordings.size() < 2) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      Listed(recordings, kShownRecordings),
      " are separate recordings, and merge joins the parts of one: ",
      "read each by itself (`vcpulse report FILE`), or two side by side (`vcpulse compare A B`)"));
}

absl::Status Merging::Write() {
  while (true) {
    if (absl::Status status = OpenRuns(); !status.ok()) return status;
    if (absl::Status status = DropRepeated(); !status.ok()) return status;
    if (open_.empty()) {
      if (opened_ < runs_.size()) continue;
      return Finish();
    }
    RunReader& lowest = Lowest();
    const ChunkHeader& header = lowest.head()->header;
    const uint64_t first = header.first_sequence;
    if (opened_ < runs_.size() && runs_[opened_].first_sequence <= first) continue;
    if (!next_) next_ = first;
    absl::Status status;
    if (first <= *next_) {
      status = WriteHead(Choose());
    } else if (told_.last_sequence() >= *next_) {
      status = CloseHole(std::min(first, told_.last_sequence() + 1));
    } else if (HasRecords(header)) {
      status = CloseHole(first);
    } else {
      status = WriteHead(lowest);
    }
    if (!status.ok()) return status;
  }
}

// Opens the runs that may hold the record that comes next, or else the one that comes first.
absl::Status Merging::OpenRuns() {
  uint64_t limit = kLastNumber;
  for (const auto& run : open_) limit = std::min(limit, run->head()->header.first_sequence);
  if (open_.empty() && opened_ < runs_.size()) limit = runs_[opened_].first_sequence;
  if (next_) limit = std::max(limit, *next_);
  for (; opened_ < runs_.size() && runs_[opened_].first_sequence <= limit; ++opened_) {
    const Run& run = runs_[opened_];
    MergeReport::Part& part = report_.parts[run.part];
    auto source = OpenPart(part.file);
    if (!source.ok()) return source.status();
    auto reader = std::make_unique<RunReader>(run, *std::move(source), &part.damages);
    if (absl::Status status = reader->Advance(); !status.ok()) return InPart(run.part, status);
    if (reader->head()) open_.push_back(std::move(reader));
  }
  return absl::OkStatus();
}

// Passes over chunks whose records were all written, and closes runs that have ended.
absl::Status Merging::DropRepeated() {
  for (const auto& run : open_) {
    while (run->head() && HasRecords(run->head()->header)) {
      const Found found = *run->head();
      const bool is_beyond = found.header.last_sequence == kLastNumber;
      const bool is_repeated = next_ && found.header.last_sequence < *next_;
      if (!is_beyond && !is_repeated) break;
      const absl::StatusOr<bool> whole = run->Skip();
      if (!whole.ok()) return InPart(run->part(), whole.status());
      if (is_repeated && *whole) ++report_.repeated_chunks;
      if (is_beyond && *whole) NoteDamage(run->part(), found, "sequence number out of range");
      if (absl::Status status = run->Advance(); !status.ok()) return InPart(run->part(), status);
    }
  }
  std::erase_if(open_, [](const auto& run) { return !run->head(); });
  return absl::OkStatus();
}

// Of a chunk that lies whole in its part and cannot be used.
void Merging::NoteDamage(size_t part, const Found& chunk, std::string reason) {
  report_.parts[part].damages.push_back(
      {.offset = chunk.offset, .bytes = chunk.end() - chunk.offset, .reason = std::move(reason)});
}

// Of the chunks that come next, one that begins first; without records before one with.
RunReader& Merging::Lowest() const {
  const auto place = [](const std::unique_ptr<RunReader>& run) {
    const ChunkHeader& header = run->head()->header;
    return std::make_pair(header.first_sequence, HasRecords(header));
  };
  return **std::ranges::min_element(open_, {}, place);
}

// Of the chunks that begin with the record that comes next or before it: one without records, else
// one that need not be cut, else the one that reaches furthest.
RunReader& Merging::Choose() const {
  const auto rank = [this](const RunReader& run) {
    const ChunkHeader& header = run.head()->header;
    const bool begins_there = header.first_sequence == *next_;
    return std::make_tuple(!HasRecords(header), begins_there, header.last_sequence);
  };
  RunReader* chosen = nullptr;
  for (const auto& run : open_) {
    if (run->head()->header.first_sequence > *next_) continue;
    if (chosen == nullptr || rank(*run) > rank(*chosen)) chosen = run.get();
  }
  return *chosen;
}

absl::Status Merging::WriteHead(RunReader& run) {
  const Found found = *run.head();
  const auto payload = run.Read();
  if (!payload.ok()) return InPart(run.part(), payload.status());
  absl::Status status;
  if (HasRecords(found.header)) {
    if (payload->has_value()) {
      status = WriteRecords(found, **payload, run.part());
    } else {
      last_damaged_ = std::max(last_damaged_, found.header.last_sequence);
    }
  } else if (payload->has_value() && decoder_.Open(found.header, **payload).ok()) {
    const v1::LostRecords& lost = decoder_.context().lost();
    if (lost.first_sequence() == found.header.first_sequence &&
        lost.last_sequence() < kLastNumber && lost.last_sequence() > told_.last_sequence()) {
      told_ = lost;
    }
  }
  if (!status.ok()) return status;
  status = run.Advance();
  if (!status.ok()) return InPart(run.part(), status);
  std::erase_if(open_, [](const auto& each) { return !each->head(); });
  return absl::OkStatus();
}

absl::Status Merging::WriteRecords(const Found& found, std::span<const uint8_t> payload,
                                   size_t part) {
  const ChunkHeader& header = found.header;
  const auto head = EncodeChunkHeader(header);
  chunk_.assign(head.begin(), head.end());
  chunk_.insert(chunk_.end(), payload.begin(), payload.end());
  if (header.first_sequence == *next_) {
    const MergedChunk whole{.bytes = chunk_,
                            .place = MergedChunk::Place{.part = part, .offset = found.offset}};
    if (absl::Status status = sink_(whole); !status.ok()) return status;
  } else {
    absl::Status sunk;
    const absl::Status cut = CutChunkBefore(*next_, chunk_, [&](std::span<const uint8_t> bytes) {
      sunk = sink_({.bytes = bytes, .place = std::nullopt});
      return sunk;
    });
    if (!sunk.ok()) return sunk;
    if (!cut.ok()) {
      NoteDamage(part, found, std::string(cut.message()));
      return absl::OkStatus();
    }
  }
  if (report_.chunks == 0) report_.first_sequence = *next_;
  ++report_.chunks;
  report_.last_sequence = header.last_sequence;
  next_ = header.last_sequence + 1;
  return absl::OkStatus();
}

// No part has a record before `next` that was not written.
absl::Status Merging::CloseHole(uint64_t next) {
  NoteHole(*next_, next - 1);
  v1::LostRecords lost = told_;
  lost.set_first_sequence(std::max(lost.first_sequence(), *next_));
  lost.set_last_sequence(std::min(lost.last_sequence(), next - 1));
  if (lost.first_sequence() <= lost.last_sequence()) {
    const std::vector<uint8_t> chunk = EncodeLostChunk(*streams_[runs_.front().part], lost);
    const absl::Status status = sink_({.bytes = chunk, .place = std::nullopt});
    if (!status.ok()) return status;
  }
  next_ = next;
  return absl::OkStatus();
}

void Merging::NoteHole(uint64_t first, uint64_t last) {
  if (report_.chunks == 0) return;  // before the first record that was written
  report_.lost_records += last - first + 1;
  std::vector<SequenceRange>& shown = report_.first_holes;
  if (shown.size() == report_.holes && !shown.empty() && shown.back().last + 1 == first) {
    shown.back().last = last;
    return;
  }
  ++report_.holes;
  if (shown.size() < MergeReport::kMostHoles) shown.push_back({.first = first, .last = last});
}

absl::Status Merging::Finish() {
  if (next_ && told_.last_sequence() >= *next_) {
    if (absl::Status status = CloseHole(told_.last_sequence() + 1); !status.ok()) return status;
  }
  if (report_.chunks > 0 && last_damaged_ >= *next_) {
    told_.Clear();
    told_.set_first_sequence(*next_);
    told_.set_last_sequence(last_damaged_);
    if (absl::Status status = CloseHole(last_damaged_ + 1); !status.ok()) return status;
  }
  if (report_.chunks == 0) {
    return absl::DataLossError(absl::StrCat(report_.parts.front().file,
                                            report_.parts.size() > 1 ? " and the other parts" : "",
                                            ": no record can be read"));
  }
  const absl::StatusOr<ChunkHeader> header = DecodeChunkHeader(chunk_);
  if (!header.ok() || !decoder_.Open(*header, std::span(chunk_).subspan(kChunkHeaderBytes)).ok()) {
    return absl::OkStatus();
  }
  while (const Entry* entry = decoder_.Next()) {
    report_.ended_in_order = std::holds_alternative<v1::Summary>(entry->record);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<MergeReport> MergeTimelines(std::span<const std::string> paths,
                                           const ByteSink& sink) {
  return MergeChunks(paths, [&sink](const MergedChunk& chunk) { return sink(chunk.bytes); });
}

absl::StatusOr<MergeReport> MergeChunks(std::span<const std::string> paths,
                                        const MergedSink& sink) {
  std::vector<std::string> files;
  std::vector<std::string> empty;
  for (const std::string& path : paths) {
    std::error_code unknown;
    if (IsEmpty(path)) {
      empty.push_back(path);
    } else if (!std::filesystem::is_directory(path, unknown)) {
      files.push_back(path);
    } else {
      const auto inside = PartsIn(path);
      if (!inside.ok()) return inside.status();
      for (const std::string& file : *inside) (IsEmpty(file) ? empty : files).push_back(file);
    }
  }
  if (files.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        empty.empty() ? "no file is named" : absl::StrJoin(empty, ", "), ": there is no record"));
  }
  Merging merging(sink);
  merging.report().empty = std::move(empty);
  if (absl::Status status = merging.Index(std::move(files)); !status.ok()) return status;
  if (absl::Status status = merging.Write(); !status.ok()) return status;
  return std::move(merging.report());
}

}  // namespace vcpulse::timeline
