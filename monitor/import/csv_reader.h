#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "monitor/import/text_source.h"

namespace vcpulse::importing {

// A longer cell is no number and no name.
inline constexpr size_t kMaxCellBytes = 4096;
inline constexpr size_t kMaxCells = 1024;  // of one row

// Cells of CSV text as RFC 4180 has it, row by row: comma, CR LF or LF, cells in double quotes may
// hold all of these and doubled quotes. A byte order mark is passed over. Written for this, since
// libcsv does not tell which row it is at: it passes over empty lines unseen, or reports a CR LF as
// two. `source` must outlive it.
class CsvReader {
 public:
  explicit CsvReader(TextSource& source) : source_(source) {}

  // The next row that is not an empty line into `cells`; false at the end. Errors: InvalidArgument
  // with row and what is wrong ("row 7: ..."); of the source; nothing can be read after one.
  absl::StatusOr<bool> Next(std::vector<std::string>& cells);

  // Begins anew with the first row.
  void Rewind();

  // Number of the row that Next gave or tripped over: from 1, empty lines count.
  uint64_t row() const { return row_; }

 private:
  absl::Status ReadQuoted(std::string& cell);
  absl::Status ReadPlain(std::string& cell);
  // Whether the row goes on after a cell; takes the comma or the line's end.
  absl::StatusOr<bool> TakeSeparator();
  absl::Status Error(std::string_view what) const;

  TextSource& source_;
  std::string_view rest_;  // of the piece
  bool begun_ = false;
  uint64_t row_ = 0;
};

}  // namespace vcpulse::importing
