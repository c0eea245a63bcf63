// Writes a Parquet file of rows drawn from a seed, and the same rows as JSON lines for the readers
// that judge it: draw_rows SEED OUT.parquet OUT.jsonl. The first line has the columns, each other
// one a row: integers, timestamps and doubles (their bits) as decimal texts, so that JavaScript
// keeps all of them.

#include <bit>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "monitor/parquet/writer.h"

namespace vcpulse::parquet {
namespace {

// How the values of a column come about: each leads to another encoding, or to an edge of one.
enum class Law { kConstant, kFew, kRuns, kMany, kWalk, kExtreme, kEnd };

struct Drawn {
  Column column;
  Law law = Law::kFew;
  double nulls = 0;      // share
  double null_runs = 0;  // share of nulls that come in a run
  uint64_t latest = 0;
  bool in_null_run = false;
};

class Rows {
 public:
  explicit Rows(uint64_t seed) : random_(seed) {
    const size_t columns = 1 + Below(12);
    for (size_t i = 0; i < columns; ++i) {
      Drawn drawn;
      drawn.column = {.name = absl::StrCat(i % 3 == 0   ? "c"
                                           : i % 3 == 1 ? "ü \"x\" "
                                                        : "a.b,",
                                           i),
                      .type = static_cast<Type>(Below(6)),
                      .optional = Below(4) != 0};
      drawn.law = static_cast<Law>(Below(static_cast<uint64_t>(Law::kEnd)));
      constexpr double kShares[] = {0, 0.001, 0.1, 0.5, 0.99, 1};
      if (drawn.column.optional) drawn.nulls = kShares[Below(6)];
      columns_.push_back(drawn);
    }
    constexpr size_t kRows[] = {0, 1, 7, 8, 9, 100, 1000, 5000, 20'000};
    rows_ = kRows[Below(std::size(kRows))];
    constexpr size_t kPerGroup[] = {1, 10, 1000, 4096, 122'880};
    do {
      options_.rows_per_group = kPerGroup[Below(std::size(kPerGroup))];
    } while (rows_ / options_.rows_per_group > 1000);
  }

  absl::Status Write(const std::string& parquet, const std::string& lines) {
    std::ofstream out(parquet, std::ios::binary);
    std::ofstream expected(lines, std::ios::binary);
    std::vector<Column> schema;
    expected << "[";
    for (const Drawn& drawn : columns_) {
      if (!schema.empty()) expected << ",";
      expected << "{\"name\":" << Text(drawn.column.name)
               << ",\"type\":" << static_cast<int>(drawn.column.type)
               << ",\"optional\":" << (drawn.column.optional ? "true" : "false") << "}";
      schema.push_back(drawn.column);
    }
    expected << "]\n";
    auto writer = Writer::Create(
        schema,
        [&out](std::string_view bytes) {
          out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
          return out ? absl::OkStatus() : absl::UnavailableError("cannot write the file");
        },
        options_);
    if (!writer.ok()) return writer.status();
    (*writer)->SetMetadata("seed", "another");
    (*writer)->SetMetadata("seed", "drawn");
    for (size_t row = 0; row < rows_; ++row) {
      std::string line = "[";
      for (Drawn& drawn : columns_) {
        if (line.size() > 1) line += ",";
        line += Add(drawn, **writer);
      }
      expected << line << "]\n";
      if (absl::Status status = (*writer)->EndRow(); !status.ok()) return status;
    }
    return (*writer)->Finish();
  }

 private:
  uint64_t Below(uint64_t end) {
    return std::uniform_int_distribution<uint64_t>(0, end - 1)(random_);
  }
  bool Chance(double share) { return std::bernoulli_distribution(share)(random_); }

  static std::string Text(std::string_view text) {
    std::string quoted = "\"";
    for (const char c : text) {
      if (c == '"' || c == '\\') quoted += '\\';
      quoted += c;
    }
    return quoted + '"';
  }

  uint64_t DrawNumber(Drawn& drawn) {
    constexpr uint64_t kEdges[] = {0,
                                   1,
                                   ~uint64_t{0},
                                   uint64_t{1} << 63,
                                   (uint64_t{1} << 63) - 1,
                                   uint64_t{1} << 31,
                                   (uint64_t{1} << 31) - 1};
    switch (drawn.law) {
      case Law::kConstant:
        return 42;
      case Law::kFew:
        return Below(7);
      case Law::kRuns:
        if (Below(50) == 0) drawn.latest = Below(1000);
        return drawn.latest;
      case Law::kMany:
        return random_();
      case Law::kWalk:
        return drawn.latest += 1000 + Below(40) - (Below(10) == 0 ? 1100 : 0);
      default:
        return Below(3) == 0 ? random_() : kEdges[Below(std::size(kEdges))];
    }
  }

  double DrawDouble(Drawn& drawn) {
    if (drawn.law == Law::kMany) return std::uniform_real_distribution<double>(-1, 1)(random_);
    if (drawn.law != Law::kExtreme) return static_cast<double>(DrawNumber(drawn)) / 1000;
    using Limits = std::numeric_limits<double>;
    constexpr double kEdges[] = {0.0,           -0.0,          Limits::infinity(),
                                 Limits::max(), Limits::min(), Limits::denorm_min(),
                                 -1.5,          1e300,         -Limits::infinity()};
    // NaN in every other column of extremes, since it removes the bounds of the others.
    if (drawn.column.name.back() % 2 == 0 && Below(20) == 0) return Limits::quiet_NaN();
    return kEdges[Below(std::size(kEdges))];
  }

  std::string DrawText(Drawn& drawn) {
    if (drawn.law == Law::kMany) return absl::StrCat("text ", random_());
    if (drawn.law != Law::kExtreme) return absl::StrCat("täxt ", DrawNumber(drawn) % 1000);
    const uint64_t kind = Below(4);
    if (kind == 0) return "";
    if (kind == 1) return "\xF0\x9F\x98\x80 \"quoted\" \\ back";
    return std::string(Below(kind == 2 ? 64 : 3000), static_cast<char>('a' + Below(26)));
  }

  // Adds a value to the row; gives it as the readers expect it.
  std::string Add(Drawn& drawn, Writer& writer) {
    if (drawn.nulls > 0 && Chance(drawn.nulls)) {
      writer.AddNull();
      return "null";
    }
    switch (drawn.column.type) {
      case Type::kBoolean: {
        const bool value = DrawNumber(drawn) % 2 == 1;
        writer.AddBoolean(value);
        return value ? "true" : "false";
      }
      case Type::kInt32: {
        const auto value = static_cast<int32_t>(DrawNumber(drawn));
        writer.AddInteger(value);
        return absl::StrCat("\"", value, "\"");
      }
      case Type::kInt64:
      case Type::kTimestampNs: {
        auto value = static_cast<int64_t>(DrawNumber(drawn));
        // The first and last instants are infinity to DuckDB.
        if (drawn.column.type == Type::kTimestampNs) value /= 2;
        writer.AddInteger(value);
        return absl::StrCat("\"", value, "\"");
      }
      case Type::kDouble: {
        const double value = DrawDouble(drawn);
        writer.AddDouble(value);
        return absl::StrCat("\"", std::bit_cast<uint64_t>(value), "\"");
      }
      case Type::kString: {
        const std::string value = DrawText(drawn);
        writer.AddText(value);
        return Text(value);
      }
    }
    return "";
  }

  std::mt19937_64 random_;
  std::vector<Drawn> columns_;
  size_t rows_ = 0;
  WriterOptions options_;
};

}  // namespace
}  // namespace vcpulse::parquet

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: draw_rows SEED OUT.parquet OUT.jsonl\n");
    return 2;
  }
  const absl::Status status = vcpulse::parquet::Rows(std::stoull(argv[1])).Write(argv[2], argv[3]);
  if (!status.ok()) std::cerr << "draw_rows: " << status.ToString() << "\n";
  return status.ok() ? 0 : 1;
}
