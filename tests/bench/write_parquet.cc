// Writes the rows of a timeline to a Parquet file once they are in memory, and prints how long that
// took: write_parquet TIMELINE OUT [TIMES]. Prints rows, bytes of the file and the seconds of the
// processor of the fastest of TIMES (3) runs.

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <string>
#include <string_view>

#include "monitor/parquet/writer.h"
#include "monitor/timeline/reader.h"
#include "tests/bench/gathered_rows.h"

namespace vcpulse {
namespace {

double ProcessorSeconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / 1e9;
}

int Run(const std::string& timeline, const std::string& out, int times) {
  const auto rows = bench::GatherRows(
      [&](const auto& take) { return timeline::ReadTimeline(timeline, take).status(); });
  if (rows == nullptr) return 1;
  double fastest = 1e9;
  uint64_t bytes = 0;
  for (int i = 0; i < times; ++i) {
    bytes = 0;
    std::ofstream file(out, std::ios::binary);
    const double begin = ProcessorSeconds();
    const auto writer = parquet::Writer::Create(rows->schema(), [&](std::string_view more) {
      file.write(more.data(), static_cast<std::streamsize>(more.size()));
      bytes += more.size();
      return file ? absl::OkStatus() : absl::UnavailableError("cannot write the file");
    });
    if (!writer.ok() || !rows->WriteTo(**writer).ok()) return 1;
    file.close();
    fastest = std::min(fastest, ProcessorSeconds() - begin);
  }
  std::printf("%zu %llu %.6f\n", rows->rows(), static_cast<unsigned long long>(bytes), fastest);
  return 0;
}

}  // namespace
}  // namespace vcpulse

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: write_parquet TIMELINE OUT [TIMES]\n");
    return 2;
  }
  return vcpulse::Run(argv[1], argv[2], argc > 3 ? std::atoi(argv[3]) : 3);
}
