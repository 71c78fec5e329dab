module admit.example/admit

go 1.19
