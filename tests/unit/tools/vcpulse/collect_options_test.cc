#include "tools/vcpulse/collect_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/fakes/temporary_folder.h"

namespace vcpulse::tools {
namespace {

std::string Refusal(const std::string& directory, const std::string& parquet) {
  CollectOptions options;
  options.listen = {"tcp:127.0.0.1:0"};
  options.directory = directory;
  options.levels.parquet = parquet;
  return std::string(ParseCollect(options).status().message());
}

TEST(ParquetOption, IsAFolderOfItsOwn) {
  const std::string folder = fakes::MakeTemporaryFolder();
  const std::string store = folder + "/store";
  std::filesystem::create_directories(store);
  std::filesystem::create_directory_symlink(store, folder + "/link");
  for (const std::string& same :
       {store, store + "/", folder + "/other/../store", folder + "/link"}) {
    EXPECT_EQ(Refusal(store, same),
              "--parquet: '" + same + "' is the directory of --dir: name another one");
  }
  for (const std::string& inside : {store + "/ticks", store + "/a/b", folder + "/link/ticks"}) {
    EXPECT_EQ(Refusal(store, inside),
              "--parquet: '" + inside + "' lies in the directory of --dir: name another one");
  }
  EXPECT_EQ(Refusal(store, folder + "/ticks"), "");
  EXPECT_EQ(Refusal(store, store + "2"), "");
  EXPECT_EQ(Refusal(store, store + "/../ticks"), "");
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace vcpulse::tools
