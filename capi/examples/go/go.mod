module example.com/rxo-tunnel

go 1.21
