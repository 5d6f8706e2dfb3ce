# SPDX-License-Identifier: MIT
# usage: sharing.rb URL     a writer for sharing.py, which uses Active Record
require "active_record"

file = { adapter: "sqlite3", database: ARGV[0].delete_prefix("sqlite:"), timeout: 300_000 }
server = ARGV[0].sub("mysql:", "mysql2:")
ActiveRecord::Base.establish_connection(server.start_with?("sqlite:") ? file : server)

def block(head) = File.read("docs/VERSIONS.md")[/^```ruby #{head}\n(.*?)^```/m, 1]

base = ActiveRecord::Base.connection
base.instance_eval(block("migration")) unless base.column_exists?(:prices, :lock_version)
eval(block("rails"))
$stdout.sync = true
row = nil
while (line = $stdin.gets)
  verb, id = line.split
  begin
    case verb
    when "insert" then Price.create!(id: id, price: 0)
    when "read" then row = Price.find(id)
    when "save" then row.update!(price: row.price + 1)
    when "add" then Price.where(id: id).update_all("price = price + 1")
    end
    puts "ok"
  rescue StandardError => e
    puts "#{e.class.name.demodulize}(#{e.message.tr("\n", " ")}"
  end
end
