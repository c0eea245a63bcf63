// Writes the labelled set: FOLDER/NAME.csv, FOLDER/held-apart/NAME.csv and
// FOLDER/blind-spots/NAME.csv for each CPU model. The same bytes on every machine.
// tests/data/labelled/README.md explains the model.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

#include "tests/accuracy/labelled_series.h"

namespace {

bool Write(const std::filesystem::path& path, const std::string& text) {
  std::ofstream out(path, std::ios::binary);
  out << text;
  out.close();
  if (!out) std::fprintf(stderr, "cannot write %s\n", path.c_str());
  return static_cast<bool>(out);
}

}  // namespace

int main(int argc, char** argv) {
  using namespace vcpulse::accuracy;
  if (argc != 2) {
    std::fprintf(stderr, "usage: make_labelled_set FOLDER\n");
    return 2;
  }
  const std::filesystem::path folder = argv[1];
  std::error_code error;
  for (const char* part : {"held-apart", "blind-spots"}) {
    std::filesystem::create_directories(folder / part, error);
  }
  for (const CpuModel& cpu : CpuModels()) {
    const std::string file = std::string(cpu.name) + ".csv";
    const bool written = Write(folder / file, ToCsv(cpu, LabelledSet(cpu))) &&
                         Write(folder / "held-apart" / file, ToCsv(cpu, HeldApartSet(cpu))) &&
                         Write(folder / "blind-spots" / file, ToCsv(cpu, BlindSpotSet(cpu)));
    if (!written) return 2;
  }
  return 0;
}
