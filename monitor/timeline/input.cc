#include "monitor/timeline/input.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <span>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "kvm/base/text.h"
#include "monitor/timeline/merge.h"

namespace vcpulse::timeline {

// Whole chunks, one behind the other, as merging gives them.
struct JoinedParts {
  struct Extent {
    uint64_t begin = 0;  // in the whole
    uint64_t bytes = 0;
    std::optional<size_t> file{};  // nothing: it lies in `made`
    uint64_t offset_in_file = 0;   // or in `made`
  };

  std::vector<std::string> files;
  std::vector<Extent> extents;
  std::vector<uint8_t> made;       // chunks that were cut, and those that tell of a loss
  std::vector<Damage> skipped;     // in the files
  std::vector<std::string> empty;  // MergeReport::empty
  uint64_t bytes = 0;

  void Add(const MergedChunk& chunk);
};

void JoinedParts::Add(const MergedChunk& chunk) {
  const uint64_t length = chunk.bytes.size();
  Extent extent{.begin = bytes, .bytes = length};
  if (chunk.place) {
    extent.file = chunk.place->part;
    extent.offset_in_file = chunk.place->offset;
  } else {
    extent.offset_in_file = made.size();
    made.insert(made.end(), chunk.bytes.begin(), chunk.bytes.end());
  }
  bytes += length;
  if (!extents.empty()) {
    Extent& last = extents.back();
    if (last.file == extent.file && last.offset_in_file + last.bytes == extent.offset_in_file) {
      last.bytes += length;
      return;
    }
  }
  extents.push_back(extent);
}

namespace {

constexpr size_t kNamedInputs = 2;
constexpr size_t kMostOpenParts = 16;

absl::StatusOr<std::shared_ptr<const JoinedParts>> PlanJoin(const std::vector<std::string>& paths) {
  auto parts = std::make_shared<JoinedParts>();
  auto merged = MergeChunks(paths, [&parts](const MergedChunk& chunk) {
    parts->Add(chunk);
    return absl::OkStatus();
  });
  if (!merged.ok()) return merged.status();
  for (MergeReport::Part& part : merged->parts) {
    for (Damage& damage : part.damages) {
      damage.reason = absl::StrCat(damage.reason, " (in ", part.file, ")");
      parts->skipped.push_back(std::move(damage));
    }
    parts->files.push_back(std::move(part.file));
  }
  parts->empty = std::move(merged->empty);
  return parts;
}

class JoinedSource final : public ByteSource {
 public:
  explicit JoinedSource(std::shared_ptr<const JoinedParts> parts) : parts_(std::move(parts)) {}

  absl::StatusOr<size_t> ReadAt(uint64_t offset, std::span<uint8_t> out) override;
  void Forget(uint64_t /*offset*/) override {}
  std::vector<Damage> Skipped() const override { return parts_->skipped; }

 private:
  absl::StatusOr<ByteSource*> SourceOf(size_t file);

  const std::shared_ptr<const JoinedParts> parts_;
  std::map<size_t, std::unique_ptr<ByteSource>> open_;  // by place in files
};

absl::StatusOr<size_t> JoinedSource::ReadAt(uint64_t offset, std::span<uint8_t> out) {
  size_t done = 0;
  while (done < out.size() && offset + done < parts_->bytes) {
    const uint64_t at = offset + done;
    const JoinedParts::Extent& extent =
        *std::prev(std::ranges::upper_bound(parts_->extents, at, {}, &JoinedParts::Extent::begin));
    const uint64_t inside = at - extent.begin;
    const auto length =
        static_cast<size_t>(std::min<uint64_t>(out.size() - done, extent.bytes - inside));
    if (!extent.file) {
      const auto from =
          parts_->made.begin() + static_cast<ptrdiff_t>(extent.offset_in_file + inside);
      std::copy_n(from, length, out.begin() + static_cast<ptrdiff_t>(done));
    } else {
      const auto source = SourceOf(*extent.file);
      if (!source.ok()) return source.status();
      const auto got = (*source)->ReadAt(extent.offset_in_file + inside, out.subspan(done, length));
      if (!got.ok()) return got.status();
      if (*got < length) {
        return absl::DataLossError(
            absl::StrCat(parts_->files[*extent.file], " has become shorter while it was read"));
      }
    }
    done += length;
  }
  return done;
}

absl::StatusOr<ByteSource*> JoinedSource::SourceOf(size_t file) {
  const auto known = open_.find(file);
  if (known != open_.end()) return known->second.get();
  if (open_.size() == kMostOpenParts) open_.clear();
  auto source = OpenByteSource(parts_->files[file]);
  if (!source.ok()) return source.status();
  return open_.emplace(file, *std::move(source)).first->second.get();
}

}  // namespace

absl::StatusOr<Input> Input::Join(std::vector<std::string> paths) {
  if (paths.empty()) return absl::InvalidArgumentError("no timeline is named");
  Input input(paths.front());
  if (paths.size() == 1) return input;
  if (std::ranges::find(paths, "-") != paths.end()) {
    return absl::InvalidArgumentError(
        "standard input cannot be joined with other parts, which are read twice: name a file");
  }
  auto joined = PlanJoin(paths);
  if (!joined.ok()) return joined.status();
  for (const std::string& path : (*joined)->empty) {
    if (std::ranges::find(paths, path) == paths.end()) continue;  // of a folder: it says nothing
    return absl::InvalidArgumentError(absl::StrCat(path, " is empty: leave it out"));
  }
  input.paths_ = std::move(paths);
  input.joined_ = *std::move(joined);
  return input;
}

std::string Input::Name() const {
  if (IsStandardInput()) return "standard input";
  return Listed(paths_, kNamedInputs);
}

absl::StatusOr<std::unique_ptr<ByteSource>> Input::Open() const {
  if (joined_ == nullptr) return OpenByteSource(path());
  return std::make_unique<JoinedSource>(joined_);
}

absl::StatusOr<std::unique_ptr<ByteSource>> OpenJoinedSource(
    const std::vector<std::string>& files) {
  auto joined = PlanJoin(files);
  if (!joined.ok()) return joined.status();
  return std::make_unique<JoinedSource>(*std::move(joined));
}

}  // namespace vcpulse::timeline
