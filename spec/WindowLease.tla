------------------------------ MODULE WindowLease ------------------------------
(* Leases of a window over a slow network, between a store and nodes whose clocks *)
(* drift.  A node sends, the store lends, the answer comes; each when it likes,   *)
(* or never.  The store tells a duration; the node counts it on its own clock,    *)
(* from when it sent, and takes off what its clock may be wrong by.               *)
(*                                                                                *)
(* Time is the store's, in ticks.  A node's clock counts quarters of a tick, and  *)
(* in each tick goes on by 4 - Drift to 4 + Drift of them, as it likes.           *)
EXTENDS Integers, FiniteSets
CONSTANTS Nodes, Limit, Batch, Cost,
          Ticks,      \* of the store, in a window
          Drift,      \* quarters that a clock gains or loses in a tick
          Margin,     \* the drift that nodes reckon with; guard off: 0
          FromSent,   \* a lease lasts from the sending; guard off: from the answer
          AtSpending  \* life is checked when spending; guard off: who waits takes
VARIABLES phase,      \* of the store's window
          used, adm,  \* of the window: lent, and admitted at an instant of it
          st, age,    \* of each node's request; quarters since it was sent
          units, lasts,
          cr, rest    \* in hand, and quarters until that dies; 0: it is dead
vars == <<phase, used, adm, st, age, units, lasts, cr, rest>>
node == <<st, age, units, lasts, cr, rest>>

Q == 4
Min(a, b) == IF a < b THEN a ELSE b
Max(a, b) == IF a > b THEN a ELSE b
Zero == [n \in Nodes |-> 0]

Init == /\ phase = 0 /\ used = 0 /\ adm = 0 /\ st = [n \in Nodes |-> "idle"]
        /\ age = Zero /\ units = Zero /\ lasts = Zero /\ cr = Zero /\ rest = Zero

Send(n) == /\ st[n] = "idle" /\ st' = [st EXCEPT ![n] = "asked"]
           /\ UNCHANGED <<phase, used, adm, age, units, lasts, cr, rest>>

Lent == LET k == Min(Max(Batch, Cost), Limit - used) IN IF k >= Cost THEN k ELSE 0
Serve(n) == /\ st[n] = "asked" /\ used' = used + Lent
            /\ st' = [st EXCEPT ![n] = IF Lent > 0 THEN "answered" ELSE "idle"]
            /\ units' = [units EXCEPT ![n] = Lent]
            /\ lasts' = [lasts EXCEPT ![n] = IF Lent > 0 THEN Ticks - phase ELSE 0]
            /\ age' = [age EXCEPT ![n] = IF Lent > 0 THEN @ ELSE 0]
            /\ UNCHANGED <<phase, adm, cr, rest>>

\* The quarters that an answer is still worth.  What lives is of the same window, and lives as
\* long as the later; what is dead makes room.
Worth(n) == lasts[n] * (Q - Margin) - IF FromSent THEN age[n] ELSE 0
Early(n) == ~AtSpending /\ units[n] >= Cost
Came(n) == units[n] - IF Early(n) THEN Cost ELSE 0
Forget(n) == /\ st' = [st EXCEPT ![n] = "idle"] /\ age' = [age EXCEPT ![n] = 0]
             /\ units' = [units EXCEPT ![n] = 0] /\ lasts' = [lasts EXCEPT ![n] = 0]
Reply(n) == /\ st[n] = "answered" /\ Forget(n)
            /\ LET alive == cr[n] > 0 /\ rest[n] > 0
                   sum == IF alive THEN cr[n] + Came(n) ELSE Came(n)
                   then == IF alive THEN Max(rest[n], Worth(n)) ELSE Max(0, Worth(n)) IN
               /\ cr' = [cr EXCEPT ![n] = sum]
               /\ rest' = [rest EXCEPT ![n] = IF sum = 0 THEN 0 ELSE then]
            /\ adm' = adm + IF Early(n) THEN Cost ELSE 0
            /\ UNCHANGED <<phase, used>>
GiveUp(n) == /\ st[n] # "idle" /\ Forget(n) /\ UNCHANGED <<phase, used, adm, cr, rest>>

Spend(n) == /\ cr[n] >= Cost /\ rest[n] > 0 /\ adm' = adm + Cost
            /\ cr' = [cr EXCEPT ![n] = @ - Cost]
            /\ rest' = [rest EXCEPT ![n] = IF cr[n] = Cost THEN 0 ELSE @]
            /\ UNCHANGED <<phase, used, st, age, units, lasts>>
Crash(n) == /\ cr[n] > 0 /\ Forget(n)
            /\ cr' = [cr EXCEPT ![n] = 0] /\ rest' = [rest EXCEPT ![n] = 0]
            /\ UNCHANGED <<phase, used, adm>>

Paces == IF Drift = 0 THEN {Q} ELSE {Q - Drift, Q, Q + Drift}
Tick == \E pace \in [Nodes -> Paces] :
            /\ phase' = (phase + 1) % Ticks
            /\ IF phase' = 0 THEN used' = 0 /\ adm' = 0 ELSE UNCHANGED <<used, adm>>
            /\ age' = [n \in Nodes |-> IF st[n] = "idle" THEN age[n]
                                       ELSE Min(age[n] + pace[n], Ticks * Q)]
            /\ rest' = [n \in Nodes |-> Max(0, rest[n] - pace[n])]
            /\ UNCHANGED <<st, units, lasts, cr>>

Next == Tick \/ \E n \in Nodes :
            Send(n) \/ Serve(n) \/ Reply(n) \/ GiveUp(n) \/ Spend(n) \/ Crash(n)
Spec == Init /\ [][Next]_vars

PerWindow == adm <= Limit              \* by the store's window, at the instant of admission
Lending == used <= Limit
Reached == adm < Limit                 \* must be violated: all of it can be had

\* Every ask is answered, if the store serves and answers come.
Answers == \A n \in Nodes : WF_vars(Serve(n)) /\ WF_vars(Reply(n))
FairSpec == Spec /\ Answers
Answered == \A n \in Nodes : st[n] # "idle" ~> st[n] = "idle"
================================================================================
